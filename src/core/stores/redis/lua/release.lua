-- release: remove the hold or the queue entry of a hold id, and hand the lock on.
-- KEYS[1] record   KEYS[2] queue
-- ARGV[1] names
-- ARGV[2] see _shared.lua; the amount is how long to remember the hold id, ms; 0 is not at all; the flag says what else may
--   come of this hold id, and where to remember it:
--   2 an acquire that was not answered: in the queue, for as long as is said
--   1 nothing, and every earlier release of this process on this lock was answered: in the record, in place of those
--   0 nothing, but an earlier release was not answered: in the record, beside it
-- ARGV[3] the lock's name, to be announced where this leaves it free; or none
-- Returns {'released' | 'expired' | 'cancelled' | 'absent', now, …}; … are hold id, fence and end of every open claim of the
--   process. `expired`: the lease was over, but nobody had taken the key. Or, in short, now alone: released, and no claim of
--   the process is open.
-- Safe to repeat: it removes once, and what is remembered keeps the first answer. The first write is always one that is
--   allowed at maxmemory.
local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])

-- The only hold, to be remembered for an hour at most, and nobody waits, or the first who waits is live: most calls end
-- here, in the same way as below. Bytes and what they mean are in _shared.lua.
local over = 35 + #ARGV[1]
local isOnly = text and string.find(text, ARGV[1], 35, true) == 35
local process, owner, id, claimMs, liveMs
if isOnly and #text >= over then
  local newline, mark = string.byte(text, over, over + 1)
  isOnly = newline == 10 and (mark == 35 or mark == 63)
  -- One waits alone: what would be asked of the queue is here.
  if isOnly and mark == 63 then
    process, owner, id, claimMs, liveMs, over = string.match(text, '^(%S+) (%S+) (%S+) w (%d+) 0 (%d+)()', over + 2)
    isOnly = over ~= nil
  end
end
local ms, mayEnd = string.match(ARGV[2], '^(%d+) (1?)')
if isOnly and #text < over + 1900 and mayEnd == '1' and tonumber(ms) <= 3600000 then
  local atMs, endMs = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(string.sub(text, 21, 33))
  -- From the fence on.
  if string.byte(text, 21) == 43 then endMs = endMs + string.sub(text, 1, 13) end
  local rest = ''
  if ms == '0' then
    rest = string.sub(text, over)
  else
    -- In place of the earlier ones of the same process.
    local own = '\n#' .. string.match(ARGV[1], '^%S+ ')
    local from = string.find(text, own, over, true)
    rest = string.sub(text, over, (from or 0) - 1)
    while from do
      local to = string.find(text, '\n', from + 1, true)
      from = to and string.find(text, own, to, true)
      rest = rest .. (to and string.sub(text, to, (from or 0) - 1) or '')
    end
    rest = rest .. '\n#' .. ARGV[1] .. ' r' .. time[1] .. '.' .. time[2] .. ' ' .. ms
  end
  local q, g = string.byte(text, 17, 18)
  if q == 45 and g == 45 and endMs > atMs then
    -- The lease's own time to live has an hour to spare.
    if not redis.pcall('SET', KEYS[1], string.sub(text, 1, 18) .. rest, 'KEEPTTL').err then
      if ARGV[3] then redis.call('PUBLISH', string.match(ARGV[2], '(%S+)$') .. 'freed', 'freed ' .. ARGV[3]) end
      return atMs
    end
  elseif q == 113 and g == 45 and endMs > atMs then
    local isLast, isLive, first = true, liveMs and tonumber(liveMs) > atMs, nil
    if not id then
      local page = redis.call('ZRANGE', KEYS[2], 0, 1)
      first = page[1] or ''
      isLast = not page[2] or string.sub(page[2], 1, 1) == ':'
      process, owner, id, claimMs = string.match(first, '^(%S+) (%S+) (%S+) w (%d+) ')
      local known = id and redis.call('ZMSCORE', KEYS[2], ':p' .. process, ':s' .. process, ':o' .. owner) or {}
      liveMs = known[1]
      isLive = liveMs and tonumber(liveMs) > atMs and not known[2] and known[3] == '1'
    end
    if isLive then
      local isOwn = string.sub(ARGV[1], 1, #process + 1) == process .. ' '
      local channel = not isOwn and string.match(ARGV[2], '(%S+)$') .. process
      -- As judge() and tell() do it; who is found unreachable is judged below.
      local inSlot = channel and string.find(channel, '{', 1, true) and KEYS[1] .. ':' .. process
      local listeners
      if channel and not inSlot then
        listeners = redis.call('PUBSUB', 'NUMSUB', channel)[2]
      elseif inSlot and liveMs % 1 > 0 then
        listeners = redis.pcall('PUBSUB', 'SHARDNUMSUB', inSlot)[2]
      end
      if listeners ~= 0 then
        local ends = atMs + claimMs .. ''
        local fence = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))
        if text >= fence then fence = string.format('%.0f', string.sub(text, 1, 16) + 1) end
        if isLast then redis.call('DEL', KEYS[2]) else redis.call('ZREM', KEYS[2], first, ':o' .. owner) end
        local hold = '\nW' .. ends .. ' ' .. process .. ' ' .. owner .. ' ' .. id
        local record = fence .. (isLast and '--' or 'q-') .. hold .. rest
        if atMs + claimMs <= endMs then
          redis.call('SET', KEYS[1], record, 'KEEPTTL')
        else
          redis.call('SET', KEYS[1], record, 'PX', math.max(0, math.ceil(fence / 1000) - atMs) + claimMs + 3600000)
        end
        if isOwn then return {'released', atMs, id, fence, ends} end
        local message = 'granted ' .. id .. ' ' .. fence .. ' ' .. ends
        local heard = inSlot and tonumber(redis.pcall('SPUBLISH', inSlot, message))
        if not heard or heard == 0 then redis.call('PUBLISH', channel, message) end
        return atMs
      end
    end
  end
end

-- One of several that read, and nobody waits, or the first who waits is live and wants to write: its line alone goes, since
-- there may be a thousand others.
--@include _own-line
over = from and (string.find(text, '\n#', to, true) or #text + 1)
local forMs, flag = string.match(ARGV[2], '^(%d+) ([01])')
if from and (from > 34 or to < over - 1) and forMs and tonumber(forMs) <= 3600000 then
  local atMs = time[1] * 1000 + math.floor(time[2] / 1000)
  local nowUs = time[1] .. string.sub('00000' .. time[2], -6)
  local q, g = string.byte(text, 17, 18)
  local isRemembering = false
  if g == 103 then
    redis.call('ZREMRANGEBYSCORE', KEYS[2], '1000000000000000', nowUs)
    isRemembering = redis.call('ZCOUNT', KEYS[2], nowUs, '+inf') > 0
  end
  local isKept = (g == 45 or isRemembering) and tonumber(string.sub(text, 21, 33)) > atMs
  local others = string.sub(text, 19, from - 1) .. string.sub(text, to + 1, over - 1)
  if isKept and q == 113 then
    --@include _writer-first
    isKept = isBarred
  end
  local rest, isFull = string.sub(text, over), false
  if forMs ~= '0' then
    local caller = string.match(ARGV[1], '^%S+')
    if flag == '1' then
      rest = string.gsub(rest, '\n#(%S+)[^\n]*', function(process) return process == caller and '' or nil end)
    end
    isFull = #rest > 1500
    if not isFull then
      rest = rest .. '\n#' .. ARGV[1] .. ' r' .. time[1] .. '.' .. time[2] .. ' ' .. forMs
    end
  end
  local flags = string.char(q) .. ((isFull or isRemembering) and 'g' or '-')
  local record = string.sub(text, 1, 16) .. flags .. others .. rest
  if isKept and not redis.pcall('SET', KEYS[1], record, 'KEEPTTL').err then
    if isFull then
      redis.call('ZADD', KEYS[2], nowUs + forMs * 1000, ':gr' .. string.match(ARGV[1], '%S+$'))
      if redis.call('PTTL', KEYS[2]) < tonumber(forMs) then redis.call('PEXPIRE', KEYS[2], forMs) end
    end
    return atMs
  end
end
--@include _shared

local status
for i, hold in ipairs(holds) do
  if hold.names == names then
    table.remove(holds, i)
    status = 'released'
    break
  end
end
if not status then
  local before = recall()
  if before then return withClaims({before, nowMs}) end
  if dequeue(ownMember, owner) then
    status = 'cancelled'
    sweepQueue()
  elseif text and string.find(text .. '\n', ' ' .. names .. '\n', 19, true) then
    status = 'expired'
  else
    status = 'absent'
  end
end

-- Remembered in the record while that is short; what was remembered for long enough goes.
local rememberMs = tonumber(amount)
-- Nothing was there and nothing can come: a repeat finds the same.
if status == 'absent' and flag ~= '2' then rememberMs = 0 end
if remembering then
  remembering = redis.call('ZCOUNT', queue, '(' .. digits(nowUs), '+inf') > 0
  redis.call('ZREMRANGEBYSCORE', queue, digits(goneFrom), digits(nowUs))
end
if rememberMs > 0 then
  if flag == '1' and status ~= 'absent' then
    receipts = string.gsub(receipts, '\n#(%S+)[^\n]*', function(process) return process == caller and '' or nil end)
  end
  if #receipts > 1500 then
    receipts = string.gsub(receipts, '\n#[^\n]* %a(%d+)%.(%d+) (%d+)', function(...)
      return untilMs(...) <= nowMs and '' or nil
    end)
  end
  local letter = string.sub(status, 1, 1)
  if flag ~= '2' and #receipts <= 1500 then
    receipts = receipts .. '\n#' .. names .. ' ' .. letter .. time[1] .. '.' .. time[2] .. ' ' .. amount
  else
    allowGrowth()
    redis.call('ZADD', queue, digits(nowUs + rememberMs * 1000), ':g' .. letter .. holdId)
    keepQueue(rememberMs)
    remembering = true
  end
end

if waiting and not hasWriter() then
  handOn()
elseif status ~= 'absent' or rememberMs > 0 or alone == names then
  -- A waiter may be named whose queue was evicted.
  writeRecord()
end
if ARGV[3] and #holds == 0 and status ~= 'absent' then
  redis.call('PUBLISH', channels .. 'freed', 'freed ' .. ARGV[3])
end
return withClaims({status, nowMs})
