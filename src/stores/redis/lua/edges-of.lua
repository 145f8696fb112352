-- edges-of: list the edges of an owner; changes nothing.
-- KEYS[1] the owner's edges, a zset: an edge -> until when it counts, in ms
-- Returns {edge, …}: the 64 at most that count the longest.
-- Safe to repeat: it only reads.
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
return redis.call('ZRANGE', KEYS[1], '+inf', '(' .. nowMs, 'BYSCORE', 'REV', 'LIMIT', 0, 64)
