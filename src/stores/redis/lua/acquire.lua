-- acquire: grant the lock to the owner, queue the waiter, or repeat what an earlier call with this hold got.
-- ARGV[1] process   ARGV[2] owner   ARGV[3] hold   ARGV[4] mode   ARGV[5] lease, ms
-- ARGV[6] for how long the last fence is kept after a lease, ms
-- ARGV[7] "<1 to queue, or 0> <claim ms> <priority> <most waiters> <liveness ms> <prefix of the channels>"
-- ARGV[8] the least fence that a hold may get if it is the only one, or none, or 0
-- ARGV[9] the newest waiter of the process, or none
-- Returns
--   {'granted', now, fence, end, 1 if it is a claim, how many other holds its family has, how many of these its owner has, …} |
--   {'queued', now, free at, how many are before it, 1 if it was not known, 1 if the newest is not there, …} |
--   {'refused', 'full' or 'conflict', now, free at, how many wait, 0, 0, …} | {'cancelled', now}; … as parts/claims.lua says;
--   or, in short, the fence alone: granted, nobody else holds, for the whole lease from now on, and the fence is now in us.
-- Safe to repeat: by hold.
--@include parts/layout
local process, owner, hold, mode, ttlMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[6]
local format, fence, ends, queued, buriedMs = unpack(redis.call(
  'HMGET', lock, 'format', 'fence', 'ends', 'queued', 'tombstones'
))
if format and format ~= FORMAT_NUMBER then return redis.error_reply('RLFORMAT the lock is of another format') end
local endMs, least, claims = nowMs + ARGV[5], tonumber(ARGV[8] or 0), 0
if not ends and not queued and not buriedMs then
  --@include parts/grant-alone
  if raised == nowUs then return fence end
  return {'granted', nowMs, fence, endMs, 0, 0, 0}
end

if buriedMs and tonumber(buriedMs) > nowMs and tonumber(redis.call('ZSCORE', tombstones, hold) or 0) > nowMs then
  return {'cancelled', nowMs}
end
local mayQueue, claimMs, priority, maxWaiters, livenessMs, channels = string.match(
  ARGV[7], '^(%d) (%d+) (%S+) (%d+) (%d+) (%S+)$'
)
ends = tonumber(ends or 0)
--@include parts/holds
--@include parts/queue
if hasExpired() then
  --@include parts/remove
  dropExpired()
end
-- What is known of the process and of the waiter, and how many waiters its family has.
local fields, said = {'p:' .. process, 'w:' .. hold}, {}
fieldsOf('c:', owner, fields)
if queued then said = redis.call('HMGET', waiters, unpack(fields)) end
-- Writes down until when the calling process is live. Every waiter that comes says so, too: it is written with a tenth to
-- spare, and not again before that is used up. `said` begins with what is written.
local function markLive()
  local untilMs, state, before = string.match(said[1] or '0 live', '^(%d+) (%a+)(.*)$')
  local number, server = 0, ''
  if isCluster then number, server = listenersOf(process) end
  local mark = number > 0 and server or ''
  if state == 'suspended' then
    state = 'owed'
  elseif mark == before and untilMs - nowMs >= tonumber(livenessMs) then
    return
  end
  local spanMs = math.ceil(livenessMs * 1.1)
  -- First, of a poll: at maxmemory, only a write after this one may need memory.
  if said[2] then redis.call('HDEL', lock, '') end
  redis.call('HSET', waiters, 'p:' .. process, string.format('%.0f %s', math.max(nowMs + spanMs, untilMs), state .. mark))
  if redis.call('PTTL', waiters) >= spanMs then return end
  redis.call('PEXPIRE', queue, 2 * spanMs)
  redis.call('PEXPIRE', waiters, 2 * spanMs)
end
local isWaiting, isBlocked, granted, taken, handsOff = said[2], false, {}, {}, true
local handOffWithin, tellGranted, reply
local family, depth, number, isHeld = familyOf(owner, hold)
local isPoll = isWaiting or isHeld
if isWaiting then markLive() end
if family > 0 or count == 0 or limitOf(leastMode) > 1 or queued == 'front' then
  --@include parts/admit
  if queued then
    --@include parts/hand-off
    --@include parts/hand-off-more
    tellGranted(1)
    -- A live waiter may stand behind those that were looked at. The caller may be that one, unless it is new.
    isBlocked = first and (first == true and not isWaiting or first ~= true and not taken[first.id])
    if not queued then said = {} end
    if #granted > 0 then
      family, depth, number, isHeld = familyOf(owner, hold)
      if queued then said = redis.call('HMGET', waiters, unpack(fields)) end
    end
  end
  -- Whether a new waiter would be the first one, by its priority. Then it is one, and has its turn.
  local function comesFirst()
    if isWaiting or mayQueue == '0' or redis.call('ZCARD', queue) >= tonumber(maxWaiters) then return false end
    local _, first = unpack(redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES'))
    if tonumber(placeOf(nowUs, priority, 0)) >= tonumber(first) then return false end
    markLive()
    return true
  end
  if isHeld then
    if count == 1 and least > tonumber(fence) then
      fence = ARGV[8]
      redis.call('HSET', lock, 'fence', fence)
      local untilMs = ends
      --@include parts/keep
    end
    endMs = several and tonumber(redis.call('ZSCORE', leases, hold) or ends) or ends
    reply = {'granted', nowMs, fence, endMs, string.find(isHeld, ' claim', 1, true) and 1 or 0, family - 1, number - 1}
  elseif admits(owner, mode, family) and (family > 0 or not isBlocked or comesFirst()) then
    if isWaiting then dequeue(hold, fields, said, 3) end
    if count > 0 then
      local own = {id = hold, process = process, owner = owner, mode = mode, endMs = endMs, least = least}
      grantBeside(own, family, number)
    else
      --@include parts/grant-alone
      count, ends, leastMode, onlyId, onlyOwner, onlyProcess = 1, endMs, mode, hold, owner, process
    end
    family, number = family + 1, number + 1
    -- It may be of the family of those that this call granted before.
    for _, waiter in ipairs(granted) do waiter.isAlone = false end
    local told = #granted
    if queued then
      handOffWithin(owner)
      tellGranted(told + 1)
      if #granted > told then family, depth, number = familyOf(owner) end
    end
    reply = {'granted', nowMs, fence, endMs, 0, family - 1, number - 1}
  end
end

if not reply then
  local position = isWaiting and redis.call('ZRANK', queue, hold) or queued and redis.call('ZCARD', queue) or 0
  local status, isNewestLost = 'queued', ARGV[9] and redis.call('HEXISTS', waiters, 'w:' .. ARGV[9]) == 0
  -- In conflict, it reads beside others and asks to write: it would wait for its own family, and for any other that does the same.
  if not isWaiting and family > 0 and limitOf(mode) < limitOf(leastMode) then
    status = 'conflict'
  elseif mayQueue == '0' then
    status = 'refused'
  elseif not isWaiting and position >= tonumber(maxWaiters) then
    status = 'full'
  elseif not isWaiting then
    -- Behind those that came before, in front of those that are not nested in a holder as deep.
    -- If nobody waited, nothing is known of other processes. If the lock itself was lost meanwhile, nor is it of its waiters.
    if not queued and redis.call('ZCARD', queue) > 0 then
      redis.call('DEL', queue, waiters)
    elseif queued and position == 0 then
      redis.call('DEL', waiters)
      said = {}
    end
    local sinceUs = string.format('%.0f', nowUs)
    redis.call('ZADD', queue, placeOf(sinceUs, priority, depth), hold)
    local changes = {'w:' .. hold, process .. ' ' .. owner .. ' ' .. mode .. ' ' .. claimMs .. ' ' .. priority .. ' ' .. sinceUs}
    for i = 3, #fields do
      changes[#changes + 1] = fields[i]
      changes[#changes + 1] = (said[i] or 0) + 1
    end
    redis.call('HSET', waiters, unpack(changes))
    markLive()
    local flag = (depth > 0 or queued == 'front') and 'front' or 'yes'
    if flag ~= queued then redis.call('HSET', lock, 'queued', flag) end
    position = redis.call('ZRANK', queue, hold)
  end
  reply = {status, nowMs, ends, position, isWaiting and 0 or 1, isNewestLost and 1 or 0}
end
if isPoll or #granted > 0 then
  --@include parts/claims
end
return done(reply)
