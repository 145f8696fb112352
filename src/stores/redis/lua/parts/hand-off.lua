-- Handing the lock to the first waiter. Needs `process` and `hold`, those of the caller. Afterwards `granted` has the claims; and
-- `nextWaiter` is the one that comes next, nil if there is none, true if nobody knows.

-- Sends a message to a process, after every write. In a cluster the message stays in the shard if the process listens there,
-- and goes to all servers if not.
local function tell(name, message)
  local heard = isCluster and tonumber(redis.pcall('SPUBLISH', LOCK_KEY .. ':' .. name, message))
  if not heard or heard == 0 then redis.call('PUBLISH', channels .. name, message) end
end

-- Sends the claims to their processes, from one on. The calling process finds its own in the reply.
tellGranted = function(from)
  for i = from, #granted do
    local waiter = granted[i]
    if waiter.process ~= process then
      tell(waiter.process, table.concat({'granted', waiter.id, fence, waiter.endMs, othersOf(waiter)}, ' '))
    end
  end
end

-- A page of the queue, the place in it up to which it is done, and whether it is the last one; how many waiters of the queue
-- were passed over, and read.
local page, at, isLast, passed, seen = {}, 1, false, 0, 0
-- The known states of processes, not of waiters: each process is checked once for each call.
local verdicts, paid = {}, {}

-- The state of a process: 'live'; 'gone': its waiters are removed; or 'passed': they are skipped until it polls.
local function judge(name, known)
  local liveUntilMs, state, mark = string.match(known or '0 live', PROCESS_PATTERN)
  if tonumber(liveUntilMs) <= nowMs then return 'gone' end
  if state == 'owed' then paid[name] = known end
  if name == process or state == 'owed' then return 'live' end
  if state == 'suspended' then return 'passed' end
  local isDeaf
  if isCluster then
    -- A process may not have subscribed yet, or may have subscribed on another server before the slot was moved here.
    local number, server = listenersOf(name)
    isDeaf = mark ~= '' and number == 0 and mark == server
  else
    isDeaf = redis.call('PUBSUB', 'NUMSUB', channels .. name)[2] == 0
  end
  if not isDeaf then return 'live' end
  redis.call('HDEL', LOCK_KEY, '')
  setState(name, known, 'suspended')
  return 'passed'
end

-- Returns the first waiter whose process is live; nil if there is none, and true if nobody knows, after very many.
local function nextLive()
  while true do
    -- An empty queue is not read again.
    -- One more is read than belongs to the page: if it is there, this is not the last page. Most hand-offs need one waiter.
    if not page[at] and not isLast then
      local size = seen == 0 and 1 or PAGE_SIZE
      page = seen == 0 and redis.call('ZRANGE', QUEUE_KEY, '0', '1') or redis.call('ZRANGE', QUEUE_KEY, passed, passed + size)
      at = 1
      isLast, page[size + 1] = not page[size + 1], nil
    end
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
      if verdict == 'gone' then dequeue(id, waiter.fields, waiter.said) end
    end
    if verdict == 'passed' then passed = passed + 1 end
    at, seen = at + 1, seen + 1
  end
  if passed == 0 then dropQueue() end
end

-- A holder with the limit 1 admits only its descendants, which are in front. The lock shows only that there may be some.
local mayHandOff = count == 0 or limitOf(leastMode) > 1
if not mayHandOff and queued == 'front' then
  local id, place = unpack(redis.call('ZRANGE', QUEUE_KEY, '0', '0', 'WITHSCORES'))
  local waiter = id and readWaiter(id)
  mayHandOff = id and tonumber(place) < tonumber(placeOf(waiter.sinceUs, waiter.priority, 0))
end
local nextWaiter = mayHandOff and nextLive()
local goesOn = nextWaiter and nextWaiter ~= true
if goesOn and count == 0 then
  local first = nextWaiter
  local hold, owner, process, mode, endMs, minFence = first.id, first.owner, first.process, first.mode, first.endMs, 0
  -- It shares the lock, or others wait within its owner. What follows is `claim` for the only hold.
  goesOn = limitOf(mode) > 1 or tonumber(first.said[#first.said] or 0) > 1
  dequeue(hold, first.fields, first.said, not goesOn and isLast and passed == 0 and not page[at + 1])
  if queued and paid[process] then setState(process, paid[process], 'live') end
  claims = 1
  --@include parts/lock grant-alone
  granted[1], taken[hold] = first, true
  if not goesOn then nextWaiter = nil end
end

--@section more
-- Handing the lock to further waiters, alongside others.

-- Makes a waiter a holder, for as long as its claim lasts.
local function claim(waiter, family, number)
  dequeue(waiter.id, waiter.fields, waiter.said)
  -- The only waiter of its trace: this call grants it nothing else.
  waiter.hasNoFamily = family == 0 and waiter.said[2] == '1'
  granted[#granted + 1], taken[waiter.id] = waiter, true
  grantBeside(waiter, family, number)
end

-- Returns the waiters of an owner and of its descendants, in order.
local function within(owner)
  local left, found, from = tonumber(redis.call('HGET', WAITERS_KEY, 'c:' .. owner) or 0), {}, 0
  while left > 0 and from < SCAN_LIMIT do
    local ids = redis.call('ZRANGE', QUEUE_KEY, from, from + PAGE_SIZE - 1)
    if #ids == 0 then break end
    for _, id in ipairs(ids) do
      local waiter = readWaiter(id)
      if isAncestor(owner, waiter.owner) then
        found[#found + 1], left = waiter, left - 1
      end
    end
    from = from + PAGE_SIZE
  end
  return found
end

-- Grants claims to the waiters of an owner that was just granted, and of its descendants, as far as the holds admit them. The
-- others advance ahead of all waiters that are not nested as deep.
handOffWithin = function(owner)
  local nested, left = within(owner), {}
  local size = #nested > 0 and redis.call('ZCARD', QUEUE_KEY)
  for _, waiter in ipairs(nested) do
    local family, _, number = familyOf(waiter.owner)
    if admits(waiter.owner, waiter.mode, family) then
      readFamily(waiter)
      claim(waiter, family, number)
    else
      left[#left + 1] = waiter
    end
  end
  for _, waiter in ipairs(left) do
    local _, depth = familyOf(waiter.owner)
    redis.call('ZADD', QUEUE_KEY, 'LT', placeOf(waiter.sinceUs, waiter.priority, depth), waiter.id)
  end
  if #left > 0 then
    redis.call('HSET', LOCK_KEY, 'queued', 'front')
    queued = 'front'
  end
  -- Begins at the first waiter again: some that were passed over may have been granted, or moved.
  if #nested > 0 then page, at, isLast, passed = {}, 1, size + #left == #nested, 0 end
end

-- After one that shares the lock, goes on until one that the holds do not admit; or until many were granted: then a message makes
-- the process of the next one go on.
while goesOn do
  if taken[nextWaiter.id] then
    if tonumber(nextWaiter.said[#nextWaiter.said] or 0) > 1 then handOffWithin(nextWaiter.owner) end
    nextWaiter = limitOf(nextWaiter.mode) > 1 and nextLive()
    if not nextWaiter or nextWaiter == true then break end
  end
  local family, _, number = familyOf(nextWaiter.owner)
  goesOn = admits(nextWaiter.owner, nextWaiter.mode, family)
  if not goesOn or #granted >= GRANT_LIMIT then break end
  if paid[nextWaiter.process] then setState(nextWaiter.process, paid[nextWaiter.process], 'live') end
  claim(nextWaiter, family, number)
end
if goesOn and nextWaiter and nextWaiter ~= true then tell(nextWaiter.process, 'next ' .. nextWaiter.id) end

--@section claims
-- Appends claims of the calling process to `reply`: those that this call made, and of a poll the other open ones that lapse
-- first; hold, fence and end of each, and the two numbers of `othersOf`.
local function append(claim)
  for _, each in ipairs({claim.id, fence, claim.endMs, othersOf(claim)}) do reply[#reply + 1] = each end
end
for _, waiter in ipairs(granted) do
  if waiter.process == process and waiter.id ~= hold then append(waiter) end
end
if isPoll and claims > 0 then
  for _, other in ipairs(listHolds(nowMs, '+inf', CLAIMS_LIMIT)) do
    if other.isClaim and other.process == process and other.id ~= hold and not taken[other.id] then append(other) end
  end
end
