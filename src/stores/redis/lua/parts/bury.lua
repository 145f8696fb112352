-- Remembers the release of `hold` for as long as an acquire of it may still arrive, and by `status` whether it had held.
local restMs = nowMs + rememberMs
redis.call('ZREMRANGEBYSCORE', tombstones, '-inf', nowMs)
redis.call('ZADD', tombstones, 'NX', restMs + (status == 'released' and 0.5 or 0), hold)
buriedMs = math.max(restMs, buriedMs or 0)
redis.call('HSET', lock, 'format', FORMAT_NUMBER, 'tombstones', buriedMs)
redis.call('PEXPIRE', tombstones, buriedMs - nowMs)
local untilMs = ends
--@include parts/keep
