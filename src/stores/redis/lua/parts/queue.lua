-- The waiters, and whether their processes are live. Needs `channels`; with a brace in them this is a cluster, in which a process
-- may also listen to '<lock>:<process>', in the lock's own slot.
local isCluster = string.find(channels, '{', 1, true)

-- Reads a waiter. A waiter without its text was lost; nobody knows whose it was.
local function readWaiter(id)
  local text = redis.call('HGET', waiters, 'w:' .. id) or '- - write 0 0 0'
  local process, owner, mode, claimMs, priority, sinceUs = string.match(text, '^(%S+) (%S+) (%S+) (%d+) (%S+) (%d+)$')
  return {
    id = id, process = process, owner = owner, mode = mode, endMs = nowMs + claimMs, priority = priority, sinceUs = sinceUs,
  }
end

-- Changes the state of a process. `known` is what is known of it.
local function setState(name, known, state)
  redis.call('HSET', waiters, 'p:' .. name, (string.gsub(known, ' %a+', ' ' .. state, 1)))
end

local function placeOf(sinceUs, priority, front)
  if priority == '0' and front == 0 then return sinceUs end
  return sinceUs - priority * DEGREE_US - front * FRONT_US
end

-- Removes a waiter. `fields` are, from a place on, those that count the waiters of its owner and of the owner's ancestors; `said`
-- is what they say.
local function dequeue(id, fields, said, from)
  local over = {'w:' .. id}
  redis.call('ZREM', queue, id)
  for i = from, #fields do
    if tonumber(said[i] or 1) > 1 then
      redis.call('HINCRBY', waiters, fields[i], -1)
    else
      over[#over + 1] = fields[i]
    end
  end
  redis.call('HDEL', waiters, unpack(over))
end

-- Nobody waits any more: nothing is kept of the processes.
local function sweep()
  redis.call('DEL', waiters)
  redis.call('HDEL', lock, 'queued')
  queued = false
end

-- How many connections of a process listen in the lock's slot, and the name of this server of the cluster, behind a space; zero
-- and none if the server can't tell, or the user may not ask.
local listenersOf = isCluster and function(name)
  local number, server = redis.pcall('PUBSUB', 'SHARDNUMSUB', lock .. ':' .. name)[2], redis.pcall('CLUSTER', 'MYID')
  return number or 0, type(server) == 'string' and ' ' .. server or ''
end
