-- What is kept of a lock: six keys of one slot. A lock that is free has the first alone, with its format and its last fence.
-- This is format 1. A script refuses every other one. CONTRIBUTING.md says what may change within it.
--
-- Numbers are decimal text; times are of this server's clock, in ms or us. A mode is `write`, `read` or a number of permits.
-- An owner is a path, <trace id>/<branch>/…; its ancestors are the beginnings of that. A hold or a waiter is named by its hold id.
--
-- At maxmemory a script may only add after a write that needs no memory. If it has none to begin with, `HDEL <lock> ''`, which
-- removes nothing, is the first one. In a cluster, a server that a slot moves away from has an error for a key that is gone: such
-- a key is not read again, and one that may be filled again is not emptied before the end.
--
-- The texts of holds and waiters are closed: older scripts can't read a further word. What is new gets a field of its own.
--
-- KEYS[1] …:lock, a hash
--   format       1
--   fence        the last fence
--   ends         when the last of the leases ends, ms; absent if nobody holds
--   mode         of the holds, `write` if it is absent; of several modes, the one with the least limit
--   claims       how many of the holds were handed off and not renewed since, if any
--   queued       `yes` if somebody waits; `front` if a waiter may stand before strangers
--   tombstones   until when there may be a tombstone, ms
--  With one hold:
--   hold, owner, process
--  From the second hold on, until there is none:
--   holds        how many there are; the next two keys say which
--   grants       how many were granted since nobody held: the number of the last one
--   mixed        present if holds of different limits may be together
-- KEYS[2] …:holds, a hash
--   h:<hold>     a hold: "<process> <owner> <mode> <the fence that it got> <its number>", and " claim"
--   o:<owner>    how many holds the owner has
-- KEYS[3] …:leases, a zset
--   <hold>       -> when its lease ends, ms
-- KEYS[4] …:queue, a zset
--   <hold>       a waiter -> its place: the time queued in us, less 1e7 for each step of priority, less 1e14 for each step of its
--                front, which is the depth of the deepest holder that it is nested in
-- KEYS[5] …:waiters, a hash
--   w:<hold>     a waiter: "<process> <owner> <mode> <claim ms> <priority> <queued at, us>"
--   c:<owner>    how many waiters are of the owner or its descendants
--   p:<process>  a process: "<until when it is live, ms> <state>"; in a cluster also the server on which it listens in this slot.
--                `suspended` is passed over until it polls; `owed` polled since, and is granted the next time even if it can't
--                be reached; others are `live`
-- KEYS[6] …:tombstones, a zset
--   <hold>       a release that came before its acquire -> until when that acquire is cancelled, ms; 0.5 more if it had held
--
--@define FORMAT_NUMBER '1'
--@define WAITER_PATTERN '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%S+)%s(%d+)$'
--@define HOLD_PATTERN '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%d+)(.*)$'
--@define PROCESS_PATTERN '^(%d+)%s(%a+)(.*)$'
--@define ONLY_HOLD_FIELDS 'ends','hold','owner','process','mode','claims'
--@define LOCK_KEY KEYS[1]
--@define HOLDS_KEY KEYS[2]
--@define LEASES_KEY KEYS[3]
--@define QUEUE_KEY KEYS[4]
--@define WAITERS_KEY KEYS[5]
--@define TOMBSTONES_KEY KEYS[6]
--@define STEP_US 1e7
--@define FRONT_US 1e14
-- Limits of one call.
--@define SCAN_LIMIT 4096
--@define GRANT_LIMIT 256
--@define LIST_LIMIT 1000
--@define CLAIMS_LIMIT 64
--@define PAGE_SIZE 64
local time = redis.call('TIME')
local nowUs = time[1] * 1e6 + time[2]
local nowMs = math.floor(nowUs / 1000)
local format, fence, ends, queued, buriedUntilMs, onlyId = unpack(redis.call(
  'HMGET', LOCK_KEY, 'format', 'fence', 'ends', 'queued', 'tombstones', 'hold'
))
if format and format ~= FORMAT_NUMBER then return redis.error_reply('RLFORMAT the lock is of another format') end
-- The holds: none until parts/holds.lua reads them or `grant-alone` grants one.
local count, claims, onlyOwner, onlyProcess, leastMode = 0, 0, nil, nil, nil

--@section keep
-- Keeps the lock for `recordTtlMs` and 100 s after the latest of `untilMs`, which is when a lease ends; the time that the fence is,
-- later than that if the clock was set back; and `buriedUntilMs`. Because of the 100 s, few grants must write this.
local keepMs = math.max(untilMs, math.ceil((fence or 0) / 1000), buriedUntilMs or 0) - nowMs + recordTtlMs + 1e5
redis.call('PEXPIRE', LOCK_KEY, keepMs)

--@section grant-alone
-- Grants a lock that nobody holds. `hold`, `owner`, `process`, `mode` and `endMs` are the new hold's, `claims` is 1 for a claim.
local last = tonumber(fence or 0)
-- A fence that nobody had: the time, or more than the last one, and `minFence` or more.
local raised = math.max(nowUs, last + 1, minFence)
fence = raised == nowUs and time[1] .. string.sub('00000' .. time[2], -6) or string.format('%.0f', raised)
-- A claim may take the place of a hold whose fields are still there (release.lua): it replaces all of them.
if claims == 1 then
  redis.call(
    'HSET', LOCK_KEY, 'fence', fence, 'ends', endMs, 'hold', hold, 'owner', owner, 'process', process, 'mode', mode, 'claims', '1'
  )
else
  redis.call(
    'HSET', LOCK_KEY, 'format', FORMAT_NUMBER, 'fence', fence, 'ends', endMs, 'hold', hold, 'owner', owner, 'process', process
  )
  if mode ~= 'write' then redis.call('HSET', LOCK_KEY, 'mode', mode) end
end
count, ends, onlyId, onlyOwner, onlyProcess, leastMode = 1, endMs, hold, owner, process, mode
-- Kept already: the last grant was in this minute, and this lease ends within the rest of the 100 s.
if raised ~= nowUs or math.floor(last / 6e7) ~= math.floor(raised / 6e7) or endMs - nowMs > 4e4 then
  local untilMs = endMs
  --@include parts/lock keep
end
