-- release: remove the hold or the queue entry of a hold id, and hand the lock on.
-- KEYS[1] record   KEYS[2] queue
-- ARGV[1] names
-- ARGV[2] see parts/call.lua; the amount is how long to remember the hold id, ms; 0 is not at all; the flag says what else may
--   come of this hold id, and where to remember it:
--   2 an acquire that was not answered: in the queue, for as long as is said
--   1 nothing, and every earlier release of this process on this lock was answered: in the record, in place of those
--   0 nothing, but an earlier release was not answered: in the record, beside it
-- ARGV[3] the lock's name, to be announced if this leaves the lock free; or none
-- Returns {'released' | 'expired' | 'cancelled' | 'absent', now, …}; … are hold id, fence and end of every open claim of the
--   process. `expired`: the lease was over, but nobody had taken the key. Or, in short, now alone: released, and no claim of
--   the process is open.
-- Safe to repeat: it removes once, and what is remembered keeps the first status. The first write is always one that is
--   allowed at maxmemory.
local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])
--@include parts/layout
--@include parts/check-format
--@include quick/release-only-hold
--@include quick/release-reader
--@include parts/general
--@include parts/take-away
--@include parts/remember

local status = remove()
local before = not status and recall()
if before then return withClaims({before, nowMs}) end
status = status or cancel()
local isRemembered = remember(status)
if waiting and not hasWriter() then
  handOn()
elseif status ~= 'absent' or isRemembered or alone == names then
  -- The record may name a waiter whose queue was evicted.
  writeRecord()
end
if ARGV[3] and not hasHolds() and status ~= 'absent' then
  redis.call('PUBLISH', channels .. 'freed', 'freed ' .. ARGV[3])
end
return withClaims({status, nowMs})
