-- force-release: take the lock from its holders if their fence is the one named, hand the lock on, and tell the holders.
-- KEYS[1] record   KEYS[2] queue
-- ARGV[1] '- - -'   ARGV[2] see parts/call.lua; the amount is the fence, and of the rest only the channel prefix is used
-- Returns 1, or 0 if nobody holds with that fence.
-- Safe to repeat: the next holder has another fence.
local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])
--@include parts/layout
--@include parts/check-format
--@include parts/general

if not hasHolds() or last ~= tonumber(amount) then return 0 end
local taken = holds
holds = {}
if readers > 0 then
  for _, hold in ipairs(readersIn(READERS_FROM)) do
    removeReader(hold.names, string.match(hold.names, '^%S+ (%S+)'))
    taken[#taken + 1] = hold
  end
end
handOn()
for _, hold in ipairs(taken) do
  local process, id = string.match(hold.names, '^(%S+) %S+ (%S+)$')
  tell(process, 'lost ' .. id)
end
return 1
