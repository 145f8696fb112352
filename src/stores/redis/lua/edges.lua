-- edges: keep an edge of an owner, or remove it; or list them.
-- KEYS[1] the owner's edges, a zset: an edge -> until when it counts, in ms
-- ARGV[1] the edge, or none   ARGV[2] for how long it counts, ms; 0 removes it
-- Returns {edge, …}, without an edge: the 64 at most that count the longest. Else {}.
-- Safe to repeat: an edge is there once.
local edges, edge, ttlMs = KEYS[1], ARGV[1], tonumber(ARGV[2])
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
if not edge then return redis.call('ZRANGE', edges, '+inf', '(' .. nowMs, 'BYSCORE', 'REV', 'LIMIT', 0, 64) end
if ttlMs == 0 then
  redis.call('ZREM', edges, edge)
  return {}
end
-- First a write that maxmemory allows. Expired edges go last, because a key that is empty meanwhile would be gone.
local leftMs = redis.call('PTTL', edges)
redis.call('PEXPIRE', edges, math.max(leftMs, ttlMs))
redis.call('ZADD', edges, nowMs + ttlMs, edge)
if leftMs < 0 then redis.call('PEXPIRE', edges, ttlMs) end
redis.call('ZREMRANGEBYSCORE', edges, '-inf', nowMs)
return {}
