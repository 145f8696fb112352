-- Writes down until when the calling process is live. Every waiter that comes says so, too: it is written with a tenth to
-- spare, and not again before that is used up.
local function keepLive()
  local known = redis.call('ZMSCORE', queue, ':p' .. caller, ':s' .. caller)
  local spanMs = math.ceil(livenessMs * 1.1)
  local mark = isCluster and (listenersOf(caller) or 0) > 0 and serverMark() or 0
  local isOwed = known[1] and (known[2] or hasLapsed)
  lapsed[caller] = nil
  local isSaid = known[1] and not isOwed and known[1] % 1 == mark
  if isSaid and known[1] - nowMs >= tonumber(livenessMs) then return end
  -- Removed first, so that a poll makes progress at maxmemory.
  redis.call('ZREM', queue, ':p' .. caller)
  redis.call('ZADD', queue, math.max(nowMs + spanMs, math.floor(known[1] or 0)) + mark, ':p' .. caller)
  if isOwed then redis.call('ZADD', queue, OWED_STATE, ':s' .. caller) end
  keepQueue(spanMs)
end
