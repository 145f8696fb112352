-- release: remove the hold or the queue entry of a hold id, and hand the lock on.
-- KEYS[1] record   KEYS[2] queue   KEYS[3] meta   KEYS[4] tombstone of the hold id
-- ARGV[1] hold id  ARGV[2] "<owner> <process>"  ARGV[3] "<claim ms> 0 0 <channel prefix>"
-- ARGV[4] tombstone ms: how long to remember the hold id
-- Returns now alone, where nobody waits: released; negative where the lease had ended; else
--   {'released' | 'expired' | 'cancelled' | 'absent', now, …}; … are hold id, fence and end of every open claim of
--   the process.
-- Safe to repeat: it removes once. The tombstone keeps the first answer. The first write is always a removal, so that it
--   works at maxmemory.
local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1]) or ''
local remember = ARGV[4] ~= '0'

-- It is the only hold, and nobody waits: most calls end here, before the rest is even defined.
local isOnly = string.find(text, '\n' .. ARGV[1] .. ' ', 18, true) == 19 and not string.find(text, '\n', 20, true)
local fence = string.sub(text, 1, 16)
if isOnly and string.sub(text, 17, 18) == ' -' and fence < time[1] .. string.sub('00000' .. time[2], -6) then
  local atMs = time[1] * 1000 + math.floor(time[2] / 1000)
  local freed = redis.pcall('SET', KEYS[1], fence .. ' -', 'PX', 3600000)
  if freed.err then
    -- At maxmemory, what grows must come after what shrinks.
    redis.call('DEL', KEYS[1])
    redis.call('SET', KEYS[1], fence .. ' -', 'PX', 3600000)
  end
  local isReleased = tonumber(string.match(text, '%d+', 21 + #ARGV[1])) > atMs
  if remember then redis.call('SET', KEYS[4], isReleased and 'released' or 'expired', 'PX', ARGV[4]) end
  return isReleased and atMs or -atMs
end

-- It is the only hold, and the first who waits is live: most calls on a key in demand end here, in the same way as below.
if isOnly and string.sub(text, 17, 18) == ' q' then
  local page = redis.call('ZRANGE', KEYS[2], 0, 1)
  local waiter, owner, process, claimMs = string.match(page[1] or '', '^(%S+) (%S+) (%S+) (%d+)$')
  local known = waiter and redis.call('ZMSCORE', KEYS[3], 'p' .. process, 's' .. process, 'o' .. owner) or {}
  local atMs = time[1] * 1000 + math.floor(time[2] / 1000)
  if known[1] and tonumber(known[1]) > atMs and not known[2] and known[3] == '1' then
    local isOwn = string.sub(ARGV[2], -#process) == process
    local channel = string.match(ARGV[3], '(%S+)$') .. process
    if isOwn or redis.call('PUBSUB', 'NUMSUB', channel)[2] > 0 then
      local ends, isLast = atMs + claimMs, #page == 1
      local fence = string.format('%.0f', math.max(fence + 1, time[1] * 1000000 + time[2]))
      redis.call('ZREM', KEYS[2], page[1])
      if isLast then redis.call('DEL', KEYS[3]) else redis.call('ZREM', KEYS[3], 'o' .. owner) end
      local hold = waiter .. ' ' .. ends .. ' claim ' .. owner .. ' ' .. process
      local keepMs = math.max(0, math.ceil(fence / 1000) - atMs) + claimMs + 3600000
      redis.call('SET', KEYS[1], fence .. (isLast and ' -\n' or ' q\n') .. hold, 'PX', keepMs)
      local status = tonumber(string.match(text, '%d+', 21 + #ARGV[1])) > atMs and 'released' or 'expired'
      if remember then redis.call('SET', KEYS[4], status, 'PX', ARGV[4]) end
      if isOwn then return {status, atMs, waiter, tonumber(fence), ends} end
      redis.call('PUBLISH', channel, 'granted ' .. waiter .. ' ' .. fence .. ' ' .. ends)
      return {status, atMs}
    end
  end
end
--@include _shared

local holds, last, waiting = readRecord(text)
local status, kept = 'absent', {}
for _, hold in ipairs(holds) do
  if hold.id == holdId then status = 'released' else kept[#kept + 1] = hold end
end
if status == 'absent' then
  local before = redis.call('GET', KEYS[4])
  if before then return withClaims({before, nowMs}, holds, last) end
  if dequeue(ownMember, owner) then
    status = 'cancelled'
  elseif string.find(text, '\n' .. holdId .. ' ', 1, true) then
    status = 'expired'
  end
end

if waiting and #kept == 0 then
  kept, last = handOff(last)
elseif status == 'released' or status == 'expired' then
  writeRecord(kept, last, waiting)
end
if remember then
  redis.call('DEL', KEYS[4])
  redis.call('SET', KEYS[4], status, 'PX', ARGV[4])
end
return withClaims({status, nowMs}, kept, last)
