-- force-release: take the lock from its holders if they have the given fence, hand the lock off, and send `lost` to the holders.
-- ARGV[1] fence   ARGV[2] for how long the last fence is kept after a lease, ms   ARGV[3] prefix of the channels
-- Returns 1, or 0 if nobody holds with that fence.
-- Safe to repeat: the next holder has another fence.
-- No process calls: each claim is sent.
local recordTtlMs, channels, process, hold = ARGV[2], ARGV[3], '', ''
--@include parts/lock
--@include parts/holds
--@include parts/queue
--@include parts/change remove
dropExpired()
if count == 0 or tonumber(fence) ~= tonumber(ARGV[1]) then return done(0) end
local lost = listHolds('-inf', '+inf', count)
clear()
--@include parts/change
--@include parts/hand-off
--@include parts/hand-off more
tellGranted(1)
for _, each in ipairs(lost) do tell(each.process, 'lost ' .. each.id) end
return done(1)
