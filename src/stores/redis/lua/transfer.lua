-- transfer: pass a hold on to another hold, in one step.
-- ARGV[1] process   ARGV[2] owner   ARGV[3] hold, those of the new one   ARGV[4] mode   ARGV[5] lease, ms
-- ARGV[6] for how long the last fence is kept after a lease, ms   ARGV[7] prefix of the channels
-- ARGV[8] the hold that is passed on   ARGV[9] for how long to remember that one, ms
-- Returns {'granted', now, fence, end} | {'lost' | 'shared', now}
-- Safe to repeat: the new hold gets what it got, until it is released.
local process, owner, hold, mode, leaseMs, recordTtlMs, channels, before, tombstoneMs = unpack(ARGV)
--@include parts/lock
--@include parts/holds
--@include parts/queue
--@include parts/change remove
dropExpired()
if readHold(hold) then return done({'granted', nowMs, fence, endOf(hold)}) end
local text, endMs = readHold(before), endOf(before)
if not text or tombstoneOf(hold) then return done({'lost', nowMs}) end
local _, oldOwner, _, oldFence, _, claim = string.match(text, HOLD_PATTERN)
-- To an ancestor: nobody else had the key in between.
local isInherited = isAncestor(owner, oldOwner)
-- Whether another hold of its branch stays: the two might be one owner too many.
local function isShared()
  if count == 1 or limitOf(leastMode) == math.huge then return false end
  if familyOf(oldOwner) > 1 then return true end
  for _, field in ipairs(redis.call('HKEYS', HOLDS_KEY)) do
    local other = string.match(field, '^o:(.*)$')
    if other and other ~= oldOwner and isAncestor(oldOwner, other) then return true end
  end
  return false
end
if not isInherited and isShared() then return done({'shared', nowMs}) end

redis.call('HDEL', LOCK_KEY, '')
endMs = isInherited and math.max(endMs, nowMs + leaseMs) or nowMs + leaseMs
-- Inherited, the old one goes last: the lock is never free, and keeps its fence.
if not isInherited then remove(before, oldOwner, claim ~= '') end
--@include parts/change
if count > 0 then
  local own = {id = hold, process = process, owner = owner, mode = mode, endMs = endMs, fence = isInherited and oldFence or nil}
  local family, _, ofOwner = familyOf(owner)
  grantBeside(own, family, ofOwner)
else
  local minFence = 0
  --@include parts/lock grant-alone
end
if isInherited then remove(before, oldOwner, claim ~= '') end
do
  local hold, status = before, 'released'
  --@include parts/change bury
end
if queued then
  -- The reply has no claims: the calling process gets a message, too.
  process = nil
  --@include parts/hand-off
  --@include parts/hand-off more
  handOffWithin(owner)
  tellGranted(1)
end
return done({'granted', nowMs, fence, endMs})
