-- set-edge: keep an edge, or remove it.
-- KEYS[1] the owner's edges, a zset: an edge -> until when it counts, in ms
-- ARGV[1] the edge   ARGV[2] for how long it counts, ms; 0 removes it
-- Returns 1.
-- Safe to repeat: an edge is there once.
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local ttlMs = tonumber(ARGV[2])
if ttlMs == 0 then
  redis.call('ZREM', KEYS[1], ARGV[1])
  return 1
end
-- First a write that allows the next one to add something, as in parts/write-record.lua. What is over goes last: a key that is
-- empty meanwhile would be gone, and in a cluster it can't be made again on a server that its slot moves away from.
local leftMs = redis.call('PTTL', KEYS[1])
redis.call('PEXPIRE', KEYS[1], math.max(leftMs, ttlMs))
redis.call('ZADD', KEYS[1], nowMs + ttlMs, ARGV[1])
if leftMs < 0 then redis.call('PEXPIRE', KEYS[1], ttlMs) end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', nowMs)
return 1
