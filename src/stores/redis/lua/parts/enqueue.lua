-- Queues the caller, if it may be queued and is not yet. Returns the status, 1 if the queue did not know the caller, and how
-- many wait before it: before its place, or before zero, which are all.
local function enqueue(place)
  local ahead = waiting and redis.call('ZCOUNT', queue, '-inf', '(' .. (place or '0')) or 0
  -- It reads beside others and asks to write: it would wait for itself, and for any other that does the same.
  if not place and countOf(owner) > 0 then return 'conflict', 0, ahead end
  if flag == '0' then return 'refused', 0, ahead end
  if place then return 'queued', 0, ahead end
  if ahead >= tonumber(maxWaiters) then return 'full', 0, ahead end
  redis.call('ZINCRBY', queue, 1, ':o' .. owner)
  place = digits(nowUs - priority * DEGREE_US - PLACE_ZERO)
  redis.call('ZADD', queue, place, ownMember)
  if ahead > 0 then ahead = redis.call('ZCOUNT', queue, '-inf', '(' .. place) end
  keepLive()
  if not waiting or alone or hasLapsed then
    waiting = true
    writeRecord()
  end
  return 'queued', 1, ahead
end
