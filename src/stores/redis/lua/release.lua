-- release: remove the hold or the waiter, and hand the lock off.
-- ARGV[1] hold   ARGV[2] for how long an acquire of this hold may still arrive, ms; 0 if none can
-- ARGV[3] "<process> <owner> <for how long the last fence is kept after a lease, ms> <prefix of the channels>"
-- ARGV[4] the lock's name, to be announced if this leaves the lock free; or none
-- Returns {'released' | 'expired' | 'cancelled' | 'absent', now, …}; … as in parts/hand-off.lua. `expired`: the lease had expired,
--   but nobody had taken the key. Or, in short, now alone: released, and nothing else is to say.
-- Safe to repeat: it removes once.
local hold, tombstoneMs, announced, recordTtlMs = ARGV[1], ARGV[2], ARGV[4], nil
--@include parts/lock
local isAlone, status = onlyId == hold and tonumber(ends or 0) > nowMs, nil
if isAlone then
  -- If somebody waits, the next hold takes the place of this one.
  if not queued then redis.call('HDEL', LOCK_KEY, ONLY_HOLD_FIELDS) end
  if not queued and tombstoneMs == '0' and not announced then return nowMs end
  status, ends = 'released', 0
end

local process, owner, channels
process, owner, recordTtlMs, channels = string.match(ARGV[3], '^([^ ]+) ([^ ]+) (%d+) ([^ ]+)$')
--@include parts/holds
--@include parts/queue
if not status then
  --@include parts/change remove
  local wasHeld = false
  for _, each in ipairs(dropExpired()) do wasHeld = wasHeld or each.id == hold end
  local held, number = not several and readHold(hold), nil
  if several then held, number = unpack(redis.call('HMGET', HOLDS_KEY, 'h:' .. hold, 'o:' .. owner)) end
  local isWaiting = queued and not held and redis.call('HEXISTS', WAITERS_KEY, 'w:' .. hold) == 1
  status = held and 'released' or wasHeld and 'expired' or isWaiting and 'cancelled' or 'absent'
  -- A repeat: the first one has handed the lock off.
  local tombstone = status == 'absent' and tombstoneOf(hold)
  if tombstone then return done({tombstone % 1 > 0 and 'released' or status, nowMs}) end
  if held then remove(hold, owner, string.find(held, ' claim$'), number) end
  if isWaiting then
    local waiter = {owner = owner, process = process}
    readFamily(waiter)
    dequeue(hold, waiter.fields, waiter.said, redis.call('ZCARD', QUEUE_KEY) == 1)
  end
end
--@include parts/change bury
if queued then
  --@include parts/hand-off
  if goesOn then
    --@include parts/change
    --@include parts/hand-off more
  end
  tellGranted(1)
  if isAlone and count == 0 then redis.call('HDEL', LOCK_KEY, ONLY_HOLD_FIELDS) end
end
if announced and status ~= 'absent' and count == 0 then
  redis.call('PUBLISH', channels .. 'freed', 'freed ' .. announced)
end
local reply, isPoll = {status, nowMs}, false
if #granted > 0 then
  --@include parts/hand-off claims
end
return done(reply)
