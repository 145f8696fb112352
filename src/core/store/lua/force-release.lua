-- force-release: take the lock from whoever holds it with the fence named, hand it on, and tell the holders.
-- KEYS[1] record   KEYS[2] queue   KEYS[3] meta
-- ARGV[1] '-'   ARGV[2] '- -'   ARGV[3] "0 0 0 <channel prefix>"   ARGV[4] fence
-- Returns 1, or 0 where nobody holds with that fence.
-- Safe to repeat: the next holder has another fence.
local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])
--@include _shared

local taken, last = readRecord(text)
if #taken == 0 or last ~= tonumber(ARGV[4]) then return 0 end
handOff(last)
for _, hold in ipairs(taken) do redis.call('PUBLISH', channels .. hold.process, 'lost ' .. hold.id) end
return 1
