-- renew: move the end of a hold's lease away, and turn a claim into a lease.
-- ARGV[1] hold   ARGV[2] lease, ms   ARGV[3] fence   ARGV[4] for how long the last fence is kept after a lease, ms
-- Returns {'renewed', now, end} | {'lost', now}
-- Safe to repeat: an end never moves nearer, and what is gone is never made again.
local hold, leaseMs, named, ttlMs = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
--@include parts/lock
local endMs, granted, text = ends, fence, nil
if onlyId ~= hold then
  text = ends and not onlyId and redis.call('HGET', HOLDS_KEY, 'h:' .. hold)
  if not text then return {'lost', nowMs} end
  endMs, granted = redis.call('ZSCORE', LEASES_KEY, hold) or ends, string.match(text, '^[^ ]+ [^ ]+ [^ ]+ (%d+)')
end
endMs = tonumber(endMs)
if endMs <= nowMs or named < tonumber(granted) or named > tonumber(fence) then return {'lost', nowMs} end

endMs = math.max(endMs, nowMs + leaseMs)
ends = math.max(endMs, tonumber(ends))
-- The first write: at maxmemory, only one after it may need memory.
local untilMs = ends
--@include parts/lock keep
redis.call('HSET', LOCK_KEY, 'ends', ends)
if not text then
  redis.call('HDEL', LOCK_KEY, 'claims')
  return {'renewed', nowMs, endMs}
end
redis.call('PEXPIRE', HOLDS_KEY, keepMs)
redis.call('PEXPIRE', LEASES_KEY, keepMs)
redis.call('ZADD', LEASES_KEY, endMs, hold)
if string.find(text, ' claim', 1, true) then
  redis.call('HSET', HOLDS_KEY, 'h:' .. hold, string.sub(text, 1, -7))
  redis.call('HINCRBY', LOCK_KEY, 'claims', '-1')
end
return {'renewed', nowMs, endMs}
