-- acquire: grant the lock to the owner, queue the waiter, or repeat what an earlier call with this hold got.
-- ARGV[1] process   ARGV[2] owner   ARGV[3] hold   ARGV[4] mode   ARGV[5] lease, ms
-- ARGV[6] for how long the last fence is kept after a lease, ms
-- ARGV[7] "<1 to queue, or 0> <claim ms> <priority> <most waiters> <liveness ms> <prefix of the channels>"
-- ARGV[8] the least fence that a hold may get if it is the only one, or none, or 0
-- ARGV[9] the newest waiter of the process, or none
-- Returns
--   {'granted', now, fence, end, 1 if it is a claim, the two numbers of `othersOf`, …} |
--   {'queued', now, free at, how many are before it, 1 if it was not known, 1 if the newest is not there, …} |
--   {'refused' | 'full' | 'conflict', now, free at, how many wait, 1, the same as for queued, …} | {'cancelled', now};
--   … the claims that the end of parts/hand-off.lua appends;
--   or, in short, the fence alone: granted, nobody else holds, for the whole lease from now on, and the fence is now in us.
-- Safe to repeat: by hold.
local process, owner, hold, mode, recordTtlMs, minFence = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[6], tonumber(ARGV[8] or 0)
--@include parts/lock
local endMs = nowMs + ARGV[5]
if not ends and not queued and not buriedUntilMs then
  --@include parts/lock grant-alone
  if raised == nowUs then return fence end
  return {'granted', nowMs, fence, endMs, 0, 0, 0}
end

local mayQueue, claimMs, priority, maxWaiters, livenessMs, channels = string.match(
  ARGV[7], '^(%d) (%d+) ([^ ]+) (%d+) (%d+) ([^ ]+)$'
)
--@include parts/holds
if tombstoneOf(hold) then return {'cancelled', nowMs} end
--@include parts/queue
if hasExpired() then
  --@include parts/change remove
  dropExpired()
end
-- What is known of the waiter, of its process, and how many waiters its family has; as in `readFamily`.
local fields = fieldsOf('c:', owner, {'p:' .. process})
local said = queued and redis.call('HMGET', WAITERS_KEY, 'w:' .. hold, unpack(fields)) or {false}
-- It stays true through the hand-off, which removes the caller's waiter only to grant it.
local isWaiting = table.remove(said, 1)
-- Writes what changes of the waiters, and that the calling process is live. How long, is written with a tenth to spare, and again
-- only when that is used up.
local function markLive(changes)
  local liveUntilMs, state, knownMark = string.match(said[1] or '0 live', PROCESS_PATTERN)
  local listeners, server = 0, ''
  if isCluster then listeners, server = listenersOf(process) end
  local mark = listeners > 0 and server or ''
  local isMarked = state ~= 'suspended' and mark == knownMark and liveUntilMs - nowMs >= tonumber(livenessMs)
  local spanMs = math.ceil(livenessMs * 1.1)
  if not isMarked then
    if state == 'suspended' then state = 'owed' end
    changes[#changes + 1] = 'p:' .. process
    changes[#changes + 1] = string.format('%.0f %s', math.max(nowMs + spanMs, liveUntilMs), state .. mark)
  end
  if #changes == 0 then return end
  if isWaiting then redis.call('HDEL', LOCK_KEY, '') end
  redis.call('HSET', WAITERS_KEY, unpack(changes))
  if isMarked or (queued and redis.call('PTTL', WAITERS_KEY) >= spanMs) then return end
  redis.call('PEXPIRE', QUEUE_KEY, 2 * spanMs)
  redis.call('PEXPIRE', WAITERS_KEY, 2 * spanMs)
end
local family, depth, number, isHeld = familyOf(owner, hold)
local isPoll, reply = isWaiting or isHeld, nil
if isWaiting then markLive({}) end
-- If not, a stranger has the lock alone, and nobody comes before it is released.
if family > 0 or count == 0 or limitOf(leastMode) > 1 or queued == 'front' then
  local isBlocked = false
  --@include parts/change
  if queued then
    --@include parts/hand-off
    --@include parts/hand-off more
    tellGranted(1)
    -- If nobody knows, a live waiter may stand behind those that were looked at. The caller may be that one, unless it is new.
    isBlocked = nextWaiter and not (nextWaiter == true and isWaiting)
    if isDequeued then said = queued and redis.call('HMGET', WAITERS_KEY, unpack(fields)) or {} end
    if #granted > 0 then family, depth, number, isHeld = familyOf(owner, hold) end
  end
  if not isHeld and isBlocked and family == 0 and not isWaiting and mayQueue == '1' and admits(owner, mode, family) then
    -- A new waiter that is the first one, by its priority, has its turn.
    local _, first = unpack(redis.call('ZRANGE', QUEUE_KEY, '0', '0', 'WITHSCORES'))
    isBlocked = redis.call('ZCARD', QUEUE_KEY) >= tonumber(maxWaiters) or tonumber(placeOf(nowUs, priority, 0)) >= tonumber(first)
    if not isBlocked then markLive({}) end
  end
  if isHeld then
    if count == 1 and minFence > tonumber(fence) then
      fence = string.format('%.0f', minFence)
      redis.call('HSET', LOCK_KEY, 'fence', fence)
      local untilMs = ends
      --@include parts/lock keep
    end
    local isClaim = string.find(isHeld, ' claim$') and 1 or 0
    reply = {'granted', nowMs, fence, endOf(hold), isClaim, othersOf({owner = owner, mode = mode}, family, number)}
  elseif admits(owner, mode, family) and (family > 0 or not isBlocked) then
    if isWaiting then dequeue(hold, fields, said) end
    if count > 0 then
      local own = {id = hold, process = process, owner = owner, mode = mode, endMs = endMs, minFence = minFence}
      grantBeside(own, family, number)
    else
      --@include parts/lock grant-alone
    end
    family, number = family + 1, number + 1
    -- The new hold may be of the family of the claims that this call made before.
    for _, waiter in ipairs(granted) do waiter.hasNoFamily = false end
    local told = #granted
    if queued then
      handOffWithin(owner)
      tellGranted(told + 1)
      if #granted > told then family, depth, number = familyOf(owner) end
    end
    reply = {'granted', nowMs, fence, endMs, 0, othersOf({owner = owner, mode = mode}, family, number)}
  end
end

if not reply then
  local position = isWaiting and redis.call('ZRANK', QUEUE_KEY, hold) or queued and redis.call('ZCARD', QUEUE_KEY) or 0
  local status, isNewestLost = 'queued', ARGV[9] and redis.call('HEXISTS', WAITERS_KEY, 'w:' .. ARGV[9]) == 0
  -- In conflict: it reads alongside others and asks to write. It would wait for its own family, as others may for theirs.
  if not isWaiting and family > 0 and limitOf(mode) < limitOf(leastMode) then
    status = 'conflict'
  elseif mayQueue == '0' then
    status = 'refused'
  elseif not isWaiting and position >= tonumber(maxWaiters) then
    status = 'full'
  elseif not isWaiting then
    --@include parts/queue enqueue
  end
  reply = {status, nowMs, ends, position, isWaiting and 0 or 1, isNewestLost and 1 or 0}
end
if isPoll or #granted > 0 then
  --@include parts/hand-off claims
end
return done(reply)
