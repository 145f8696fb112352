-- release: remove the hold or the queue entry of a hold id, and hand the lock on.
-- KEYS[1] record   KEYS[2] queue   KEYS[3] meta   KEYS[4] tombstone of the hold id
-- ARGV[1] hold id  ARGV[2] "<owner> <process>"  ARGV[3] "<claim ms> 0 0 <channel prefix>"
-- ARGV[4] tombstone ms: how long to remember the hold id; 0 where no acquire of it is on its way
-- Returns now alone, where nobody waits: released; negative where the lease had ended; else
--   {'released' | 'expired' | 'cancelled' | 'absent', now, …}; … are hold id, fence and end of every open claim of
--   the process.
-- Safe to repeat: it removes once. The tombstone keeps the first answer. The first write is always a removal, so that it
--   works at maxmemory.
local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])
local remember = ARGV[4] ~= '0'

-- It is the only hold, and nobody waits: most calls end here, before the rest is even defined.
local lastFence, id, endMs = string.match(text or '', '^(%d+) %-\n(%S+) (%d+) %a+ %S+ %S+$')
if id == ARGV[1] and not remember then
  local atMs = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('DEL', KEYS[1])
  redis.call('SET', KEYS[1], lastFence .. ' -', 'PX', math.max(0, math.ceil(lastFence / 1000) - atMs) + 3600000)
  return tonumber(endMs) > atMs and atMs or -atMs
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
  elseif string.find(text or '', '\n' .. holdId .. ' ', 1, true) then
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
