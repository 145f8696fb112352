-- acquire: grant the lock to the owner, queue the waiter, or repeat what an earlier call with this hold id got.
-- KEYS[1] record   KEYS[2] queue
-- ARGV[1] names
-- ARGV[2] see parts/call.lua; the amount is "<mode>+<lease ms, 12 digits>", as the record has it, with "+<number>" behind it
--   if the key is to have permits; the flag is 1 to queue, else 0
-- ARGV[3] the least fence that a hold may get if it is the only one, 16 digits; 0 or none: any
-- ARGV[4] the newest waiter of the process, as a member of the queue; or none
-- Returns
--   {'granted', now, fence, end, 1 if it is a claim, how many other holds the owner has, …} |
--   {'queued', now, free at, 1 if it was not known, how many are before it, 1 if the newest is not there, …} |
--   {'refused', 'full' or 'conflict', now, free at, 0, how many wait, 0, …} |
--   {'mismatch', now, how many permits the key has, 0, 0, 0, …} | {'cancelled', now, 0, 0, 0, 0, …}; … are hold id, fence and end of every other open claim of the process;
--   or, in short, the fence alone: granted, nobody else holds, for the whole lease from now on, and the fence is now in us.
-- Safe to repeat: by hold id.
local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])
--@include parts/layout
--@include parts/check-format
if string.byte(ARGV[2], 15) ~= PLUS_SIGN then
  --@include quick/grant-free-key
  --@include quick/queue-behind-writer
  --@include quick/read-beside-readers
end
--@include parts/general
--@include parts/keep-live
--@include parts/enter
--@include parts/enqueue

if recall() then return withClaims({'cancelled', nowMs, 0, 0, 0, 0}) end
local wanted = tonumber(string.sub(amount, 16))
local function mismatch()
  return withClaims({'mismatch', nowMs, permits or 0, 0, 0, 0})
end
if wanted and not text then
  -- If the record was deleted or evicted, the queue may still have holders of permits.
  permits = wanted
  findReaders()
end
local place = redis.call('ZSCORE', queue, ownMember)
-- Then it does not say either that this waiter is queued.
local isForgotten = place and not waiting
if isForgotten and not hasHolds() then permits = wanted end
if place then
  if permits ~= wanted then return mismatch() end
  waiting = true
  keepLive()
end
local isBlocked = waiting and (hasWriter() or handOn())
-- A live waiter may stand behind those that this call looked at. The caller may be that one, but not if it is new.
if isCut then isBlocked = not place end
if not waiting and not hasHolds() then permits = wanted end
if permits ~= wanted then return mismatch() end
local grant = repeatGrant() or enter(place, isBlocked)
if grant then return grant end
local status, isNew, ahead = enqueue(place)
if isNew == 1 and ahead == 0 then
  -- A reader beside readers that came before a waiting writer, by its priority: it has its turn.
  grant = enter(true, false)
  if grant then return grant end
end
if place and (isForgotten or hasLapsed) then writeRecord() end
local isNewestLost = ARGV[4] and not redis.call('ZSCORE', queue, ARGV[4])
return withClaims({status, nowMs, freeAt(), isNew, ahead, isNewestLost and 1 or 0})
