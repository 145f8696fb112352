-- Keeps the lock for `ttlMs` after `untilMs`, which is when a lease ends; if the clock was set back, after the time that the fence is;
-- and until `buriedMs`, while there may be tombstones. And for 100 s more, so that this is not written with each grant.
local keepMs = math.max(untilMs, math.ceil((fence or 0) / 1000), buriedMs or 0) - nowMs + ttlMs + 1e5
redis.call('PEXPIRE', lock, keepMs)
