local function unpackWaiter(member)
  local names, process, owner, id, mode, claim = string.match(member, '^((%S+) (%S+) (%S+)) (%a) (%d+)')
  return {
    names = names, id = id, owner = owner, process = process, mode = mode, claim = tonumber(claim), member = member
  }
end

local function keepQueue(ms)
  if redis.call('PTTL', queue) < ms then redis.call('PEXPIRE', queue, ms) end
end

-- Removes a member and takes it from the count of its owner; returns false if it was not there.
local function removeCounted(member, count)
  local known = redis.call('ZMSCORE', queue, member, count)
  if not known[1] then return false end
  if known[2] == '1' then
    redis.call('ZREM', queue, member, count)
  else
    redis.call('ZREM', queue, member)
    redis.call('ZINCRBY', queue, -1, count)
  end
  return true
end

local function dequeue(member, owner)
  return removeCounted(member, ':o' .. owner)
end

-- Suspends a process that waits. One that does not wait would never poll, and nothing would end its mark.
local function suspend(name)
  if redis.call('ZSCORE', queue, ':p' .. name) then redis.call('ZADD', queue, SUSPENDED_STATE, ':s' .. name) end
end
