-- renew: move the end of a hold's lease away, and turn a claim into a lease.
-- ARGV[1] hold   ARGV[2] lease, ms   ARGV[3] fence   ARGV[4] for how long the last fence is kept after a lease, ms
-- Returns {'renewed', now, end} | {'lost', now}
-- Safe to repeat: an end never moves nearer, and what is gone is never made again.
--@include parts/layout
local hold, leaseMs, named, ttlMs = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local format, fence, ends, only, claims, buriedMs = unpack(redis.call(
  'HMGET', lock, 'format', 'fence', 'ends', 'hold', 'claims', 'tombstones'
))
if format and format ~= FORMAT_NUMBER then return redis.error_reply('RLFORMAT the lock is of another format') end
local endMs, granted, text = ends, fence, nil
if only ~= hold then
  text = ends and not only and redis.call('HGET', holds, 'h:' .. hold)
  if not text then return {'lost', nowMs} end
  endMs, granted = redis.call('ZSCORE', leases, hold) or ends, string.match(text, '^%S+ %S+ %S+ (%d+)')
end
endMs = tonumber(endMs)
if endMs <= nowMs or named < tonumber(granted) or named > tonumber(fence) then return {'lost', nowMs} end

endMs = math.max(endMs, nowMs + leaseMs)
ends = math.max(endMs, tonumber(ends))
local untilMs = ends
-- The first write: at maxmemory, only one after it may need memory.
--@include parts/keep
redis.call('HSET', lock, 'ends', ends)
if text then
  redis.call('PEXPIRE', holds, keepMs)
  redis.call('PEXPIRE', leases, keepMs)
  redis.call('ZADD', leases, endMs, hold)
end
if claims and not text then
  redis.call('HDEL', lock, 'claims')
elseif claims and string.find(text, ' claim', 1, true) then
  redis.call('HSET', holds, 'h:' .. hold, string.sub(text, 1, -7))
  redis.call('HINCRBY', lock, 'claims', -1)
end
return {'renewed', nowMs, endMs}
