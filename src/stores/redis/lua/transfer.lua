-- transfer: pass a hold on to another hold id, in one step.
-- KEYS[1] record   KEYS[2] queue
-- ARGV[1] names of the new hold
-- ARGV[2] see parts/call.lua; the amount is the lease in ms, the flag is 2: the old hold id is remembered in the queue
-- ARGV[3] names of the hold that is passed on   ARGV[4] how long to remember its id, ms
-- Returns {'granted', now, fence, end} | {'lost' | 'shared', now}
-- Safe to repeat: the new hold id gets what it got, until it is released.
local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])
--@include parts/layout
--@include parts/check-format
--@include parts/general
--@include parts/take-away
--@include parts/remember

local own = findHold()
if own then return {'granted', nowMs, last, own.ends} end
local wasReleased = recall()
local hold, newOwner = {names = names, ends = nowMs + tonumber(amount), mode = mode}, owner

-- From here on the caller is the hold that ends.
names, amount = ARGV[3], ARGV[4]
caller, owner, holdId = string.match(names, '^(%S+) (%S+) (%S+)$')
if wasReleased or not findHold() then return {'lost', nowMs} end
local isShared = mode == 'w' and #holds + readers > 1 or mode ~= 'w' and hasWriter() or permits and countOf(owner) > 1
if isShared then return {'shared', nowMs} end
remember(remove())
addHold(hold, newOwner)
writeRecord()
return {'granted', nowMs, last, hold.ends}
