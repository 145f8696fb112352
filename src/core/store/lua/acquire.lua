-- acquire: grant the lock to the owner, queue the waiter, or say what an earlier call with this hold id got.
-- KEYS[1] record   KEYS[2] queue   KEYS[3] meta   KEYS[4] tombstone of the hold id
-- ARGV[1] hold id  ARGV[2] "<owner> <process>"  ARGV[3] "<claim ms> <most waiters> <liveness ms> <channel prefix>"
-- ARGV[4] lease ms   ARGV[5] queue, 1 or 0
-- Returns {'granted', now, fence, end, kind, …} | {'queued', now, free at, 1 if it was not known, '', …} |
--   {'refused' or 'full', now, free at, 0, '', …} | {'cancelled', now, 0, 0, ''};
--   … are hold id, fence and end of every other open claim of the process.
-- Safe to repeat: by hold id.
local time = redis.call('TIME')
local known = redis.call('MGET', KEYS[4], KEYS[1])
local isCancelled, text = known[1], known[2]
local leaseMs, queueing = tonumber(ARGV[4]), ARGV[5] == '1'

-- Nobody holds and nobody waits: most calls end here, before the rest is even defined.
local lastFence = not text and 0 or string.match(text, '^(%d+) %-$')
if lastFence and not isCancelled then
  local atMs, atUs = time[1] * 1000 + math.floor(time[2] / 1000), time[1] * 1000000 + time[2]
  local ends, fence = atMs + leaseMs, math.max(atUs, lastFence + 1)
  local hold = string.format('%.0f -\n%s %d %.0f lease %s', fence, ARGV[1], ends, fence, ARGV[2])
  redis.call('SET', KEYS[1], hold, 'PX', leaseMs + 3600000 + math.ceil((fence - atUs) / 1000))
  return {'granted', atMs, fence, ends, 'lease'}
end
--@include _shared

if isCancelled then return {'cancelled', nowMs, 0, 0, ''} end

local holds, last = readRecord(text)

local function granted(hold)
  return withClaims({'granted', nowMs, hold.fence, hold.ends, hold.kind}, holds)
end

local function grantNow(fence)
  local hold = {id = holdId, ends = nowMs + leaseMs, fence = fence, kind = 'lease', owner = owner, process = caller}
  holds[#holds + 1] = hold
  writeRecord(holds, fence)
  return granted(hold)
end

local function keepLive()
  local process = readProcess(caller)
  local state = (process and process.state ~= 'live') and 'owed' or 'live'
  -- Removed first, so that a poll makes progress at maxmemory.
  redis.call('HDEL', meta, 'p' .. caller)
  writeProcess(caller, {untilMs = math.max(nowMs + livenessMs, process and process.untilMs or 0), state = state})
  for _, key in ipairs({queue, meta}) do
    if redis.call('PTTL', key) < tonumber(livenessMs) then redis.call('PEXPIRE', key, livenessMs) end
  end
end

local waiting = redis.call('EXISTS', queue) == 1
local isQueued = waiting and redis.call('ZSCORE', queue, ownMember) ~= false
if isQueued then keepLive() end
if waiting and #holds == 0 then
  holds = handOff(last)
  if holds[1] then last = holds[1].fence end
end

for _, hold in ipairs(holds) do
  if hold.id == holdId then return granted(hold) end
end
if #holds == 0 then return grantNow(math.max(last + 1, nowUs)) end
if holds[1].owner == owner then
  if isQueued then dequeue(ownMember, owner) end
  return grantNow(holds[1].fence)
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
    -- Never before the last one queued, also where the clock was set back.
    local tail = waiting and redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES') or {}
    redis.call('ZADD', queue, digits(math.max(nowUs, (tail[2] or 0) + 1)), ownMember)
    redis.call('HINCRBY', meta, 'o' .. owner, 1)
    keepLive()
    if not waiting then writeRecord(holds, last) end
  end
end
return withClaims({status, nowMs, freeAt, isNew, ''}, holds)
