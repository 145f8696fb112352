-- The waiters, as core/machine/queue.ts has them. Needs `channels`; with a brace in them this is a cluster, in which a process
-- may also listen to '<lock>:<process>', in the lock's own slot.
local isCluster = string.find(channels, '{', 1, true)
-- The claims that this call makes, and their holds; whether it removed waiters.
local granted, taken, isDequeued = {}, {}, false
-- Functions of parts/hand-off.lua.
local tellGranted, handOffWithin

-- Reads a waiter. A waiter without its text was lost; nobody knows whose it was.
local function readWaiter(id)
  local text = redis.call('HGET', WAITERS_KEY, 'w:' .. id) or '- - write 0 0 0'
  local process, owner, mode, claimMs, priority, sinceUs = string.match(text, WAITER_PATTERN)
  return {
    id = id, process = process, owner = owner, mode = mode, endMs = nowMs + claimMs, isClaim = true,
    priority = priority, sinceUs = sinceUs,
  }
end

-- Reads into `said` what is known of the process of a waiter, then how many waiters each ancestor of its owner has, the root first,
-- and the owner.
local function readFamily(waiter)
  waiter.fields = fieldsOf('c:', waiter.owner, {'p:' .. waiter.process})
  waiter.said = redis.call('HMGET', WAITERS_KEY, unpack(waiter.fields))
end

-- Changes the state of a process. `known` is what is known of it.
local function setState(name, known, state)
  redis.call('HSET', WAITERS_KEY, 'p:' .. name, (string.gsub(known, ' %a+', ' ' .. state, 1)))
end

local function placeOf(sinceUs, priority, front)
  if priority == '0' and front == 0 then return sinceUs end
  return sinceUs - priority * STEP_US - front * FRONT_US
end

-- Nobody waits any more: nothing is kept of the processes.
local function dropQueue()
  redis.call('DEL', WAITERS_KEY)
  redis.call('HDEL', LOCK_KEY, 'queued')
  queued = false
end

-- Removes a waiter. `fields` and `said` are those of `readFamily`.
local function dequeue(id, fields, said, isOnly)
  local over = {'w:' .. id}
  isDequeued = true
  redis.call('ZREM', QUEUE_KEY, id)
  if isOnly then return dropQueue() end
  for i = 2, #fields do
    if tonumber(said[i] or 1) > 1 then
      redis.call('HINCRBY', WAITERS_KEY, fields[i], '-1')
    else
      over[#over + 1] = fields[i]
    end
  end
  redis.call('HDEL', WAITERS_KEY, unpack(over))
end

-- How many connections of a process listen in the lock's slot, and the name of this server of the cluster, behind a space; zero
-- and none if the server can't tell, or the user may not ask.
local function listenersOf(name)
  local number, server = redis.pcall('PUBSUB', 'SHARDNUMSUB', LOCK_KEY .. ':' .. name)[2], redis.pcall('CLUSTER', 'MYID')
  return number or 0, type(server) == 'string' and ' ' .. server or ''
end

--@section enqueue
-- Queues the waiter: behind earlier ones, ahead of all that are not nested as deep.
-- First removes what is left of a queue whose lock was lost, or what is known of processes if their waiters were lost.
if not queued and redis.call('ZCARD', QUEUE_KEY) > 0 then
  redis.call('DEL', QUEUE_KEY, WAITERS_KEY)
elseif queued and position == 0 then
  redis.call('DEL', WAITERS_KEY)
  said = {}
end
local sinceUs = string.format('%.0f', nowUs)
redis.call('ZADD', QUEUE_KEY, placeOf(sinceUs, priority, depth), hold)
local changes = {'w:' .. hold, process .. ' ' .. owner .. ' ' .. mode .. ' ' .. claimMs .. ' ' .. priority .. ' ' .. sinceUs}
for i = 2, #fields do
  changes[#changes + 1] = fields[i]
  changes[#changes + 1] = said[i] and said[i] + 1 or '1'
end
markLive(changes)
local flag = (depth > 0 or queued == 'front') and 'front' or 'yes'
if flag ~= queued then redis.call('HSET', LOCK_KEY, 'queued', flag) end
if position > 0 then position = redis.call('ZRANK', QUEUE_KEY, hold) end
