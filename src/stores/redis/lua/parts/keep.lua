-- Keeps the lock for `ttlMs` after `untilMs`, which is when a lease ends; if the clock was set back, after the time that the fence is;
-- and while there may be tombstones. And for 100 s more, so that this is not written with each grant.
local buriedUntilMs = tonumber(redis.call('HGET', lock, 'tombstones') or 0)
local keepMs = math.max(untilMs, math.ceil((fence or 0) / 1000), buriedUntilMs) - nowMs + ttlMs + 1e5
redis.call('PEXPIRE', lock, keepMs)
