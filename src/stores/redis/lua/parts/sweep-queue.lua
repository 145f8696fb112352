-- Finds out whether anybody waits. Without a waiter, only holds and remembered releases stay in the queue.
local function sweepQueue()
  local first = redis.call('ZRANGE', queue, 0, 0)[1]
  waiting = first ~= nil and string.sub(first, 1, 1) ~= ':'
  if waiting then return end
  if remembering or readers > 0 then
    redis.call('ZREMRANGEBYSCORE', queue, SUSPENDED_STATE, '(' .. READERS_FROM)
  else
    redis.call('DEL', queue)
  end
end
