-- Handing the lock to the first waiter.

-- Sends a message to a process, after every write. In a cluster the message stays in the shard if the process listens there,
-- and goes to all servers if not.
local function tell(name, message)
  local heard = isCluster and tonumber(redis.pcall('SPUBLISH', lock .. ':' .. name, message))
  if not heard or heard == 0 then redis.call('PUBLISH', channels .. name, message) end
end

-- Tells the processes of the claims, from one on. The calling process finds its own in the reply.
tellGranted = function(from)
  for i = from, #granted do
    local waiter = granted[i]
    if waiter.process ~= process then
      tell(waiter.process, table.concat({'granted', waiter.id, fence, waiter.endMs, beside(waiter)}, ' '))
    end
  end
end

-- What is known of the process of a waiter, and how many waiters its owner and the owner's ancestors have.
local function readFamily(waiter)
  waiter.fields = fieldsOf('c:', waiter.owner, {'p:' .. waiter.process})
  waiter.said = redis.call('HMGET', waiters, unpack(waiter.fields))
end

-- A page of the queue, the place in it up to which it is done, and whether it is the last one; how many waiters of the queue
-- were passed over, and read.
local page, at, isLast, passed, seen = {}, 1, false, 0, 0
-- What is known of processes: they are judged once a call, not once a waiter.
local verdicts, owed = {}, {}

-- What becomes of the waiters of a process: 'live'; 'gone', so that they go; or 'passed', until it polls.
local function judge(name, known)
  local untilMs, state, mark = string.match(known or '0 live', '^(%d+) (%a+)(.*)$')
  if tonumber(untilMs) <= nowMs then return 'gone' end
  if state == 'owed' then owed[name] = known end
  if name == process or state == 'owed' then return 'live' end
  if state == 'suspended' then return 'passed' end
  local isDeaf
  if isCluster then
    -- Nothing is known of a process that has yet to subscribe, or that subscribed on another server before the slot came here.
    local number, server = listenersOf(name)
    isDeaf = mark ~= '' and number == 0 and mark == server
  else
    isDeaf = redis.call('PUBSUB', 'NUMSUB', channels .. name)[2] == 0
  end
  if not isDeaf then return 'live' end
  redis.call('HDEL', lock, '')
  setState(name, known, 'suspended')
  return 'passed'
end

local function readPage()
  local size = seen == 0 and 1 or PAGE_SIZE
  page, at = redis.call('ZRANGE', queue, passed, passed + size), 1
  isLast = not page[size + 1]
  page[size + 1] = nil
end

-- Returns the first waiter whose process is live; nil if there is none, and true if nobody knows, after very many.
local function nextLive()
  while true do
    -- In a cluster, a server that a slot moves away from has an error for a key that is gone: an empty queue is not read again.
    if not page[at] and not isLast then readPage() end
    local id = page[at]
    if not id then break end
    if seen >= SCAN_LIMIT then return true end
    local waiter = not taken[id] and readWaiter(id)
    local verdict = waiter and verdicts[waiter.process]
    if waiter and verdict ~= 'passed' then
      readFamily(waiter)
      verdict = verdict or judge(waiter.process, waiter.said[1])
      verdicts[waiter.process] = verdict
      if verdict == 'live' then return waiter end
      if verdict == 'gone' then dequeue(id, waiter.fields, waiter.said, 2) end
    end
    if verdict == 'passed' then passed = passed + 1 end
    at, seen = at + 1, seen + 1
  end
  if passed == 0 then sweep() end
end

-- A holder that is alone admits nobody but its descendants, who stand in front. The lock says only that there may be some.
local mayHandOff = handsOff and (count == 0 or limitOf(leastMode) > 1)
if handsOff and not mayHandOff and queued == 'front' then
  local id, place = unpack(redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES'))
  local waiter = id and readWaiter(id)
  mayHandOff = id and tonumber(place) < tonumber(placeOf(waiter.sinceUs, waiter.priority, 0))
end
local first = mayHandOff and nextLive()
local goesOn = first and first ~= true
if goesOn and count == 0 then
  local hold, owner, process, mode, endMs, least = first.id, first.owner, first.process, first.mode, first.endMs, 0
  dequeue(hold, first.fields, first.said, 2)
  if owed[process] then setState(process, owed[process], 'live') end
  claims = 1
  --@include parts/grant-alone
  count, ends, leastMode, onlyId, onlyOwner, onlyProcess = 1, endMs, mode, hold, owner, process
  granted[1], taken[hold] = first, first
  goesOn = limitOf(mode) > 1 or tonumber(first.said[#first.said] or 0) > 1
end
