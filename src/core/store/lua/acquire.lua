-- acquire: grant the lock to the owner, queue the waiter, or say what an earlier call with this hold id got.
-- KEYS[1] record   KEYS[2] queue   KEYS[3] meta   KEYS[4] tombstone of the hold id
-- ARGV[1] hold id  ARGV[2] "<owner> <process>"  ARGV[3] "<claim ms> <most waiters> <liveness ms> <channel prefix>"
-- ARGV[4] lease ms   ARGV[5] queue, 1 or 0
-- Returns the fence alone, where nobody held: granted for the whole lease from now on; else
--   {'granted', now, fence, end, kind, …} | {'queued', now, free at, 1 if it was not known, '', …} |
--   {'refused' or 'full', now, free at, 0, '', …} | {'cancelled', now, 0, 0, ''};
--   … are hold id, fence and end of every other open claim of the process.
-- Safe to repeat: by hold id.
local time = redis.call('TIME')
local isCancelled = redis.call('EXISTS', KEYS[4]) == 1
local text = redis.call('GET', KEYS[1])
local leaseMs, queueing = tonumber(ARGV[4]), ARGV[5] == '1'

-- Nobody holds and nobody waits: most calls end here, before the rest is even defined.
local lastFence = not text and 0 or string.match(text, '^(%d+) %-$')
if lastFence and not isCancelled then
  local atUs = time[1] * 1000000 + time[2]
  local ends, fence = time[1] * 1000 + math.floor(time[2] / 1000) + leaseMs, math.max(atUs, lastFence + 1)
  local hold = string.format('%.0f -\n%s %.0f lease %s', fence, ARGV[1], ends, ARGV[2])
  redis.call('SET', KEYS[1], hold, 'PX', leaseMs + 3600000 + math.ceil((fence - atUs) / 1000))
  return fence
end
--@include _shared

if isCancelled then return {'cancelled', nowMs, 0, 0, ''} end

local holds, last, waiting = readRecord(text)

local function granted(hold)
  return withClaims({'granted', nowMs, last, hold.ends, hold.kind}, holds, last)
end

local function grantNow(fence)
  local hold = {id = holdId, ends = nowMs + leaseMs, kind = 'lease', owner = owner, process = caller}
  holds[#holds + 1] = hold
  last = fence
  writeRecord(holds, last, waiting)
  return granted(hold)
end

-- Not written again while most of it is left: every waiter that comes says it, too.
local function keepLive()
  local process = unpackProcess(redis.call('HGET', meta, 'p' .. caller))
  local untilMs = nowMs + livenessMs
  if process and process.state == 'live' and untilMs - process.untilMs < livenessMs / 10 then return end
  -- Removed first, so that a poll makes progress at maxmemory.
  redis.call('HDEL', meta, 'p' .. caller)
  local state = (process and process.state ~= 'live') and 'owed' or 'live'
  writeProcess(caller, {untilMs = math.max(untilMs, process and process.untilMs or 0), state = state})
  for _, key in ipairs({queue, meta}) do
    if redis.call('PTTL', key) < tonumber(livenessMs) then redis.call('PEXPIRE', key, livenessMs) end
  end
end

local isQueued = redis.call('ZSCORE', queue, ownMember) ~= false
if isQueued then
  waiting = true
  keepLive()
end
if waiting and #holds == 0 then holds, last, waiting = handOff(last) end

for _, hold in ipairs(holds) do
  if hold.id == holdId then return granted(hold) end
end
if #holds == 0 or holds[1].owner == owner then
  if isQueued then dequeue(ownMember, owner) end
  return grantNow(#holds == 0 and math.max(last + 1, nowUs) or last)
end

local freeAt = nowMs
for _, hold in ipairs(holds) do freeAt = math.max(freeAt, hold.ends) end
local status, isNew = 'queued', 0
if not queueing then
  status = 'refused'
elseif not isQueued then
  if waiting and redis.call('ZCARD', queue) >= tonumber(maxWaiters) then
    status = 'full'
  else
    isNew = 1
    redis.call('HINCRBY', meta, 'o' .. owner, 1)
    redis.call('ZADD', queue, digits(nowUs), ownMember)
    keepLive()
    if not waiting then writeRecord(holds, last, true) end
  end
end
return withClaims({status, nowMs, freeAt, isNew, ''}, holds, last)
