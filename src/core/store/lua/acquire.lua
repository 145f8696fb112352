-- acquire: grant the lock to the owner, queue the waiter, or say what an earlier call with this hold id got.
-- KEYS[1] record   KEYS[2] queue   KEYS[3] meta   KEYS[4] tombstone of the hold id
-- ARGV[1] hold id  ARGV[2] "<owner> <process>"  ARGV[3] "<claim ms> <most waiters> <liveness ms> <channel prefix>"
-- ARGV[4] lease ms   ARGV[5] queue, 1 or 0   ARGV[6] how long to keep the record: lease and an hour, ms
-- Returns the fence alone, where nobody held: granted for the whole lease from now on; else
--   {'granted', now, fence, end, kind, …} | {'queued', now, free at, 1 if it was not known, '', …} |
--   {'refused' or 'full', now, free at, 0, '', …} | {'cancelled', now, 0, 0, '', …};
--   … are hold id, fence and end of every other open claim of the process.
-- Safe to repeat: by hold id.
local time = redis.call('TIME')
local known = redis.call('MGET', KEYS[4], KEYS[1])
local isCancelled, text = known[1], known[2]

-- Nobody holds and nobody waits: most calls end here, before the rest is even defined. Fences are compared as text: they
-- have 16 digits. A record of another type reads as none: it is not overwritten, and refused below.
local last = not text and '0' or #text == 18 and string.sub(text, 17) == ' -' and string.sub(text, 1, 16)
local fence = time[1] .. string.sub('00000' .. time[2], -6)
if last and last < fence and not isCancelled then
  local ends = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[4]
  local hold = fence .. ' -\n' .. ARGV[1] .. ' ' .. ends .. ' lease ' .. ARGV[2]
  if redis.call('SET', KEYS[1], hold, 'PX', ARGV[6], text and 'XX' or 'NX') then return fence end
  redis.call('GET', KEYS[1])
end
local leaseMs, queueing = tonumber(ARGV[4]), ARGV[5] == '1'

-- Another holds and others wait: most calls on a key in demand end here, in the same way as below.
local held, id, endMs, kind, holder = string.match(text or '', '^(%d+) q\n(%S+) (%d+) (%a+) (%S+ %S+)$')
if held and queueing and not isCancelled then
  local atMs = time[1] * 1000 + math.floor(time[2] / 1000)
  local owner, process = string.match(ARGV[2], '^(%S+) (%S+)$')
  local claimMs, maxWaiters, livenessMs = string.match(ARGV[3], '^(%d+) (%d+) (%d+) ')
  local waiters = redis.call('ZCARD', KEYS[2])
  local known = redis.call('ZMSCORE', KEYS[3], 'p' .. process, 's' .. process)
  local isLive = known[1] and not known[2] and known[1] - atMs >= tonumber(livenessMs)
  local isOther = tonumber(endMs) > atMs and string.sub(holder, 1, #owner + 1) ~= owner .. ' '
  if isLive and isOther and waiters > 0 and waiters < tonumber(maxWaiters) then
    local member = ARGV[1] .. ' ' .. ARGV[2] .. ' ' .. claimMs
    -- At maxmemory it is refused for a poll, too, which adds nothing: below, a poll is told apart first.
    if redis.pcall('ZADD', KEYS[2], 'NX', string.format('%.0f', time[1] * 1000000 + time[2]), member) == 1 then
      redis.call('ZINCRBY', KEYS[3], 1, 'o' .. owner)
      local isClaim = kind == 'claim' and string.sub(holder, -#process) == process
      if not isClaim then return {'queued', atMs, tonumber(endMs), 1, ''} end
      return {'queued', atMs, tonumber(endMs), 1, '', id, tonumber(held), tonumber(endMs)}
    end
  end
end
--@include _shared

local holds, last, waiting = readRecord(text)
if isCancelled then return withClaims({'cancelled', nowMs, 0, 0, ''}, holds, last) end

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

-- Written with a tenth to spare, and not again before that is used up: every waiter that comes says it, too.
local function keepLive()
  local known = redis.call('ZMSCORE', meta, 'p' .. caller, 's' .. caller)
  local spanMs = math.ceil(livenessMs * 1.1)
  if known[1] and not known[2] and known[1] - nowMs >= tonumber(livenessMs) then return end
  -- Removed first, so that a poll makes progress at maxmemory.
  redis.call('ZREM', meta, 'p' .. caller)
  redis.call('ZADD', meta, math.max(nowMs + spanMs, known[1] or 0), 'p' .. caller)
  if known[2] then redis.call('ZADD', meta, 2, 's' .. caller) end
  for _, key in ipairs({queue, meta}) do
    if redis.call('PTTL', key) < spanMs then redis.call('PEXPIRE', key, spanMs) end
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
    redis.call('ZINCRBY', meta, 1, 'o' .. owner)
    redis.call('ZADD', queue, digits(nowUs), ownMember)
    keepLive()
    if not waiting then writeRecord(holds, last, true) end
  end
end
return withClaims({status, nowMs, freeAt, isNew, ''}, holds, last)
