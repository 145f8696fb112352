-- renew: move the end of a hold's lease away, and turn a claim into a lease. It gets the first three keys alone.
-- ARGV[1] hold   ARGV[2] lease, ms   ARGV[3] fence   ARGV[4] for how long the last fence is kept after a lease, ms
-- Returns {'renewed', now, end} | {'lost', now}
-- Safe to repeat: an end never moves nearer, and what is gone is never made again.
local hold, leaseMs, named, recordTtlMs = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
--@include parts/lock
local held = ends and not onlyId and redis.call('HGET', HOLDS_KEY, 'h:' .. hold)
if onlyId ~= hold and not held then return {'lost', nowMs} end
local _, _, _, heldFence, _, claim = string.match(held or '', HOLD_PATTERN)
local endMs = tonumber(held and redis.call('ZSCORE', LEASES_KEY, hold) or ends)
if endMs <= nowMs or named < tonumber(heldFence or fence) or named > tonumber(fence) then return {'lost', nowMs} end

endMs = math.max(endMs, nowMs + leaseMs)
ends = math.max(endMs, tonumber(ends))
local untilMs = ends
--@include parts/lock keep
redis.call('HSET', LOCK_KEY, 'ends', ends)
if not held then
  redis.call('HDEL', LOCK_KEY, 'claims')
  return {'renewed', nowMs, endMs}
end
redis.call('PEXPIRE', HOLDS_KEY, keepMs)
redis.call('PEXPIRE', LEASES_KEY, keepMs)
redis.call('ZADD', LEASES_KEY, endMs, hold)
if claim ~= '' then
  redis.call('HSET', HOLDS_KEY, 'h:' .. hold, string.sub(held, 1, -1 - #claim))
  redis.call('HINCRBY', LOCK_KEY, 'claims', '-1')
end
return {'renewed', nowMs, endMs}
