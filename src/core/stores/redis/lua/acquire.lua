-- acquire: grant the lock to the owner, queue the waiter, or say what an earlier call with this hold id got.
-- KEYS[1] record   KEYS[2] queue
-- ARGV[1] names   ARGV[2] see _shared.lua; the amount is "<mode>+<lease ms, 12 digits>", as the record has it; the flag is
--   1 to queue, else 0   ARGV[3] what the fence of a hold that is alone is at least, 16 digits; or none
-- Returns
--   {'granted', now, fence, end, 1 if it is a claim, how many other holds the owner has, …} |
--   {'queued', now, free at, 1 if it was not known, how many are before it, 0, …} |
--   {'refused', 'full' or 'conflict', now, free at, 0, how many wait, 0, …} |
--   {'cancelled', now, 0, 0, 0, 0, …}; … are hold id, fence and end of every other open claim of the process;
--   or, in short, the fence alone: granted, where nobody held, for the whole lease from now on, and the fence is now in µs.
-- Safe to repeat: by hold id.
local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])

-- Nobody holds and nobody waits: most calls end here, before the rest is even defined. Fences are compared as text: they
-- have 16 digits. Bytes and what they mean are in _shared.lua.
local fence = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))
local q, g, line, mark
if text then q, g, line, mark = string.byte(text, 17, 20) end
local isFree = not text or q == 45 and g == 45 and (not line or mark == 35) and text < fence
if isFree and not (line and string.find(text, ARGV[1], 19, true)) and not (ARGV[3] and ARGV[3] > fence) then
  local hold = fence .. '--\n' .. string.sub(ARGV[2], 1, 15) .. ARGV[1] .. (line and string.sub(text, 19) or '')
  -- An hour more than the lease at least.
  local isShort = string.find(ARGV[2], '+000000', 2, true) == 2
  redis.call('SET', KEYS[1], hold, 'PX', isShort and '4600000' or string.sub(ARGV[2], 3, 14) + 3600000)
  return fence
end

-- Another is the only one to write, and has a live lease: most calls on a key in demand end here, in the same way as below.
if (q == 45 or q == 113) and g == 45 and (mark == 119 or mark == 87) then
  local atMs, endMs = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(string.sub(text, 21, 33))
  -- From the fence on.
  if string.byte(text, 21) == 43 then endMs = endMs + string.sub(text, 1, 13) end
  local process, owner, id = string.match(text, '^(%S+) (%S+) (%S+)', 35)
  local ownProcess, ownOwner = string.match(ARGV[1], '^(%S+) (%S+)')
  local flag, wants, maxWaiters, livenessMs = string.match(ARGV[2], '^(%d) (%a %d+ 0) (%d+) (%d+)', 16)
  local line = string.find(text, '\n', 35, true)
  local isOnly = not line or string.byte(text, line + 1) == 35
  if isOnly and flag == '1' and owner ~= ownOwner and endMs > atMs and not string.find(text, ARGV[1], 19, true) then
    local place = string.format('%.0f', time[1] * 1000000 + time[2] - 1e16)
    local member, ownMark, ahead = ARGV[1] .. ' ' .. wants, ':o' .. ownOwner, nil
    -- What adds something may be refused at maxmemory: below, that is told.
    if q == 113 then
      local known = redis.call('ZMSCORE', KEYS[2], ':p' .. ownProcess, ':s' .. ownProcess)
      local isLive = known[1] and not known[2] and known[1] - atMs >= tonumber(livenessMs)
      if isLive and redis.call('ZCARD', KEYS[2]) < tonumber(maxWaiters) then
        if redis.pcall('ZADD', KEYS[2], 'NX', place, member) == 1 then
          redis.call('ZINCRBY', KEYS[2], 1, ownMark)
          ahead = redis.call('ZCOUNT', KEYS[2], '-inf', '(' .. place)
        end
      end
    elseif tonumber(maxWaiters) > 0 and not string.find(ARGV[2], '{', 16, true) and redis.call('ZCARD', KEYS[2]) == 0 then
      -- The first to wait.
      local spanMs = math.ceil(livenessMs * 1.1)
      if redis.pcall('ZADD', KEYS[2], place, member, 1, ownMark, atMs + spanMs, ':p' .. ownProcess) == 3 then
        redis.call('PEXPIRE', KEYS[2], spanMs)
        local rest = line or #text + 1
        local alone = string.byte(wants) == 119 and '\n?' .. member .. ' ' .. atMs + spanMs or ''
        local record = string.sub(text, 1, 16) .. 'q' .. string.sub(text, 18, rest - 1) .. alone .. string.sub(text, rest)
        -- The lease's own time to live has an hour to spare.
        redis.call('SET', KEYS[1], record, 'KEEPTTL')
        ahead = 0
      end
    end
    if ahead and (mark == 119 or process ~= ownProcess) then return {'queued', atMs, endMs, 1, ahead, 0} end
    if ahead then return {'queued', atMs, endMs, 1, ahead, 0, id, tonumber(string.sub(text, 1, 16)), endMs} end
  end
end

-- Others read, none of their leases is over, and nobody waits: one line more, in place, since there may be a thousand. Who
-- was queued when the record was deleted is in the queue all the same.
local isOpen = mark == 33 and q == 45 and string.byte(ARGV[2]) == 114 and (g == 45 or g == 103)
if isOpen and string.byte(redis.call('ZRANGE', KEYS[2], 0, 0)[1] or ':') == 58 then
  local atMs, leaseMs = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(string.sub(ARGV[2], 3, 14))
  local earliest, ends = string.sub(text, 21, 33), atMs + leaseMs .. ''
  local over = string.find(text, '\n#', 34, true) or #text + 1
  local own = string.find(text, string.match(ARGV[1], ' %S+ '), 34, true)
  local isNew = not own or own > over and not string.find(text, ARGV[1], over, true)
  if isNew and g == 103 then
    local id = string.match(ARGV[1], '%S+$')
    local known = redis.call('ZMSCORE', KEYS[2], ':gr' .. id, ':ge' .. id, ':gc' .. id, ':ga' .. id)
    isNew = not (known[1] or known[2] or known[3] or known[4])
  end
  if isNew and tonumber(earliest) > atMs then
    local rest = '\nr' .. ends .. ' ' .. ARGV[1] .. string.sub(text, over)
    if tonumber(redis.pcall('SETRANGE', KEYS[1], over - 1, rest)) then
      if ends < earliest then redis.call('SETRANGE', KEYS[1], 20, ends) end
      if redis.call('PTTL', KEYS[1]) < leaseMs + 3600000 then redis.call('PEXPIRE', KEYS[1], leaseMs + 3600000) end
      return {'granted', atMs, tonumber(string.sub(text, 1, 16)), atMs + leaseMs, 0, 0}
    end
  end
end

-- Others read, none of their leases is over, and one who wants to write is the first to wait for them: who comes now waits
-- behind it, and nothing else changes.
if mark == 33 and q == 113 and (g == 45 or g == 103) and string.byte(ARGV[2], 16) == 49 then
  local wants, priority, maxWaiters, livenessMs = string.match(ARGV[2], '^(%a %d+ (%-?%d+)) (%d+) (%d+)', 18)
  local atMs = time[1] * 1000 + math.floor(time[2] / 1000)
  local over = string.find(text, '\n#', 34, true) or #text + 1
  local others = string.sub(text, 34, over - 1)
  --@include _writer-first
  local caller, own, id = string.match(ARGV[1], '^(%S+) (%S+) (%S+)')
  local isNew = not string.find(others, ' ' .. own .. ' ', 1, true) and not string.find(text, ARGV[1], over, true)
  if isBarred and isNew and tonumber(string.sub(text, 21, 33)) > atMs then
    local marks = {':p' .. caller, ':s' .. caller, ':gr' .. id, ':ge' .. id, ':gc' .. id, ':ga' .. id}
    local known = redis.call('ZMSCORE', KEYS[2], unpack(marks))
    local isLive = known[1] and known[1] - atMs >= tonumber(livenessMs)
    for i = 2, 6 do isLive = isLive and not known[i] end
    local place = string.format('%.0f', time[1] * 1000000 + time[2] - priority * 1e7 - 1e16)
    local hasRoom = isLive and redis.call('ZCOUNT', KEYS[2], '-inf', '(0') < tonumber(maxWaiters)
    if hasRoom and redis.pcall('ZADD', KEYS[2], 'NX', place, ARGV[1] .. ' ' .. wants) == 1 then
      redis.call('ZINCRBY', KEYS[2], 1, ':o' .. own)
      local freeAt = ''
      for ends in string.gmatch(others, '\nr(%d+)') do
        if ends > freeAt then freeAt = ends end
      end
      local ahead = redis.call('ZCOUNT', KEYS[2], '-inf', '(' .. place)
      return {'queued', atMs, tonumber(freeAt), 1, ahead, 0}
    end
  end
end
--@include _shared

local leaseMs = tonumber(string.sub(amount, 3))
local minFence = tonumber(ARGV[3] or 0)
if recall() then return withClaims({'cancelled', nowMs, 0, 0, 0, 0}) end

-- How many holds the owner has.
local function countOwn()
  local count, middle = 0, ' ' .. owner .. ' '
  for _, hold in ipairs(holds) do
    if string.find(hold.names, middle, 1, true) then count = count + 1 end
  end
  return count
end

local function granted(hold)
  return withClaims({'granted', nowMs, last, hold.ends, hold.isClaim and 1 or 0, countOwn() - 1})
end

-- Written with a tenth to spare, and not again before that is used up: every waiter that comes says it, too.
local function keepLive()
  local known = redis.call('ZMSCORE', queue, ':p' .. caller, ':s' .. caller)
  local spanMs = math.ceil(livenessMs * 1.1)
  local mark = isCluster and (listenersOf(caller) or 0) > 0 and serverMark() or 0
  local isOwed = known[1] and (known[2] or hasLapsed)
  lapsed[caller] = nil
  local isSaid = known[1] and not isOwed and known[1] % 1 == mark
  if isSaid and known[1] - nowMs >= tonumber(livenessMs) then return end
  -- Removed first, so that a poll makes progress at maxmemory.
  redis.call('ZREM', queue, ':p' .. caller)
  redis.call('ZADD', queue, math.max(nowMs + spanMs, math.floor(known[1] or 0)) + mark, ':p' .. caller)
  if isOwed then redis.call('ZADD', queue, 2, ':s' .. caller) end
  keepQueue(spanMs)
end

local place = redis.call('ZSCORE', queue, ownMember)
local isQueued = place ~= false
-- Its record was deleted, or evicted.
local isForgotten = isQueued and not waiting
if isQueued then
  waiting = true
  keepLive()
end
local isBlocked = waiting and (hasWriter() or handOn())

for _, hold in ipairs(holds) do
  if hold.names == names then
    if #holds == 1 and last < minFence then
      last = minFence
      writeRecord()
    end
    return granted(hold)
  end
end
local count = countOwn()
if (count > 0 or not isBlocked) and admits(owner, mode) then
  if isQueued then dequeue(ownMember, owner) end
  raiseFence(mode, minFence)
  local hold = {names = names, ends = nowMs + leaseMs, mode = mode}
  holds[#holds + 1] = hold
  if isQueued then sweepQueue() end
  writeRecord()
  return granted(hold)
end

local freeAt = nowMs
for _, hold in ipairs(holds) do freeAt = math.max(freeAt, hold.ends) end
local status, isNew = 'queued', 0
-- Before its place; before zero are all.
local ahead = waiting and redis.call('ZCOUNT', queue, '-inf', '(' .. (place or '0')) or 0
if count > 0 and not isQueued then
  -- It reads beside others and wants to write: it would wait for itself, and another that does the same for it.
  status = 'conflict'
elseif flag == '0' then
  status = 'refused'
elseif not isQueued then
  if ahead >= tonumber(maxWaiters) then
    status = 'full'
  else
    isNew = 1
    redis.call('ZINCRBY', queue, 1, ':o' .. owner)
    place = digits(nowUs - priority * 1e7 - 1e16)
    redis.call('ZADD', queue, place, ownMember)
    if ahead > 0 then ahead = redis.call('ZCOUNT', queue, '-inf', '(' .. place) end
    keepLive()
    if not waiting or alone or hasLapsed then
      waiting = true
      writeRecord()
    end
  end
end
if isQueued and (isForgotten or hasLapsed) then writeRecord() end
return withClaims({status, nowMs, freeAt, isNew, ahead, 0})
