local function unpackWaiter(member)
  local names, process, owner, id, mode, claim = string.match(member, '^((%S+) (%S+) (%S+)) (%a) (%d+)')
  return {
    names = names, id = id, owner = owner, process = process, mode = mode, claim = tonumber(claim), member = member
  }
end

local function keepQueue(ms)
  if redis.call('PTTL', queue) < ms then redis.call('PEXPIRE', queue, ms) end
end

-- Removes a waiter; returns false if it was not there.
local function dequeue(member, owner)
  if redis.call('ZREM', queue, member) == 0 then return false end
  if tonumber(redis.call('ZINCRBY', queue, -1, ':o' .. owner)) <= 0 then redis.call('ZREM', queue, ':o' .. owner) end
  return true
end

-- Finds out whether anybody waits. Without a waiter, only the releases that are remembered stay in the queue.
local function sweepQueue()
  local first = redis.call('ZRANGE', queue, 0, 0)[1]
  waiting = first ~= nil and string.sub(first, 1, 1) ~= ':'
  if waiting then return end
  if remembering then
    redis.call('ZREMRANGEBYSCORE', queue, 0, '(' .. digits(RELEASES_FROM))
  else
    redis.call('DEL', queue)
  end
end
