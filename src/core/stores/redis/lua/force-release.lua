-- force-release: take the lock from whoever holds it with the fence named, hand it on, and tell the holders.
-- KEYS[1] record   KEYS[2] queue
-- ARGV[1] '- - -'   ARGV[2] see _shared.lua; the amount is the fence, and of the rest only the channel prefix is used
-- Returns 1, or 0 where nobody holds with that fence.
-- Safe to repeat: the next holder has another fence.
local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])
--@include _shared

if #holds == 0 or last ~= tonumber(amount) then return 0 end
local taken = holds
holds = {}
handOn()
for _, hold in ipairs(taken) do
  local process, id = string.match(hold.names, '^(%S+) %S+ (%S+)$')
  tell(process, 'lost ' .. id)
end
return 1
