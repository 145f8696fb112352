// Generated from lua/*.lua by `node scripts/build-lua.mjs`. Do not edit.
import type { RedisScript } from './redis-scripts.ts';

export const acquire: RedisScript = {
  name: 'acquire',
  sha1: '360138290dc13cbfef980e8ca6a192f4fb881fd0',
  source: `local time = redis.call('TIME')
local isCancelled = redis.call('EXISTS', KEYS[4]) == 1
local text = redis.call('GET', KEYS[1])
local leaseMs, queueing = tonumber(ARGV[4]), ARGV[5] == '1'
local lastFence = not text and 0 or string.match(text, '^(%d+) %-$')
if lastFence and not isCancelled then
local atUs = time[1] * 1000000 + time[2]
local ends, fence = time[1] * 1000 + math.floor(time[2] / 1000) + leaseMs, math.max(atUs, lastFence + 1)
local hold = string.format('%.0f -\\n%s %.0f lease %s', fence, ARGV[1], ends, ARGV[2])
redis.call('SET', KEYS[1], hold, 'PX', leaseMs + 3600000 + math.ceil((fence - atUs) / 1000))
return fence
end
local record, queue, meta = KEYS[1], KEYS[2], KEYS[3]
local holdId, whose = ARGV[1], ARGV[2]
local owner, caller = string.match(whose, '^(%S+) (%S+)$')
local claimMs, maxWaiters, livenessMs, channels = string.match(ARGV[3], '^(%d+) (%d+) (%d+) (%S+)$')
local ownMember = holdId .. ' ' .. whose .. ' ' .. claimMs
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local nowUs = time[1] * 1000000 + time[2]
local scanLimit = 4096
local function digits(number)
return string.format('%.0f', number)
end
local function unpackWaiter(member)
local id, owner, process, claim = string.match(member, '^(%S+) (%S+) (%S+) (%d+)$')
return {id = id, owner = owner, process = process, claim = tonumber(claim), member = member}
end
local function unpackProcess(value)
if not value then return nil end
local untilMs, state = string.match(value, '^(%d+) (%a+)$')
return {untilMs = tonumber(untilMs), state = state}
end
local function writeProcess(name, process)
redis.call('HSET', meta, 'p' .. name, process.untilMs .. ' ' .. process.state)
end
local function suspend(name)
local process = unpackProcess(redis.call('HGET', meta, 'p' .. name))
if process then
process.state = 'suspended'
writeProcess(name, process)
end
end
local lapsed = {}
local function readRecord(text)
local holds = {}
if not text then return holds, 0, false end
for id, ends, kind, owner, process in string.gmatch(text, '\\n(%S+) (%d+) (%a+) (%S+) (%S+)') do
local hold = {id = id, ends = tonumber(ends), kind = kind, owner = owner, process = process}
if hold.ends > nowMs then
holds[#holds + 1] = hold
elseif kind == 'claim' and process ~= caller then
lapsed[process] = true
end
end
local last, flag = string.match(text, '^(%d+) (.)')
return holds, tonumber(last), flag == 'q'
end
local function writeRecord(holds, last, waiting)
local text = digits(last) .. (waiting and ' q' or ' -')
local latest = math.max(nowMs, math.ceil(last / 1000))
for _, hold in ipairs(holds) do
latest = math.max(latest, hold.ends)
text = text .. '\\n' .. hold.id .. ' ' .. hold.ends .. ' ' .. hold.kind .. ' ' .. hold.owner .. ' ' .. hold.process
end
redis.call('DEL', record)
redis.call('SET', record, text, 'PX', latest - nowMs + 3600000)
for name in pairs(lapsed) do suspend(name) end
end
local function dequeue(member, owner)
if redis.call('ZREM', queue, member) == 0 then return false end
if redis.call('EXISTS', queue) == 0 then
redis.call('DEL', meta)
return true
end
if redis.call('HINCRBY', meta, 'o' .. owner, -1) <= 0 then redis.call('HDEL', meta, 'o' .. owner) end
return true
end
local function judge(process, name)
if not process or process.untilMs <= nowMs then return 'gone' end
if name == caller then return 'live' end
if process.state == 'suspended' or lapsed[name] then return 'passed' end
if process.state == 'owed' then return 'live' end
return redis.call('PUBSUB', 'NUMSUB', channels .. name)[2] > 0 and 'live' or 'unreachable'
end
local function nextLive()
local verdicts, from, size, seen = {}, 0, 1, 0
while seen < scanLimit do
local page = redis.call('ZRANGE', queue, from, from + size - 1)
if #page == 0 then break end
for _, member in ipairs(page) do
local waiter = unpackWaiter(member)
local verdict = verdicts[waiter.process]
if not verdict then
local known = redis.call('HMGET', meta, 'p' .. waiter.process, 'o' .. waiter.owner)
local process = unpackProcess(known[1])
verdict = judge(process, waiter.process)
verdicts[waiter.process] = verdict
waiter.wasOwed = verdict == 'live' and process.state == 'owed' and process
waiter.isAlone = known[2] == '1'
end
if verdict == 'live' then return waiter, verdicts end
if verdict == 'gone' then dequeue(member, waiter.owner) else from = from + 1 end
end
seen = seen + #page
size = 64
end
return nil, verdicts
end
local function withOwner(first)
local granted = {first}
if first.isAlone then return granted end
for _, member in ipairs(redis.call('ZRANGE', queue, 0, scanLimit - 1)) do
local waiter = unpackWaiter(member)
if waiter.owner == first.owner and waiter.id ~= first.id then granted[#granted + 1] = waiter end
end
return granted
end
local function handOff(last)
local holds, fence = {}, math.max(last + 1, nowUs)
local first, verdicts = nextLive()
local granted = first and withOwner(first) or {}
if first and first.isAlone then
redis.call('ZREM', queue, first.member)
redis.call('HDEL', meta, 'o' .. first.owner)
else
for _, waiter in ipairs(granted) do dequeue(waiter.member, waiter.owner) end
end
for _, waiter in ipairs(granted) do
holds[#holds + 1] = {id = waiter.id, ends = nowMs + waiter.claim, kind = 'claim', owner = waiter.owner, process = waiter.process}
end
local waiting = redis.call('EXISTS', queue) == 1
if not waiting then redis.call('DEL', meta) end
writeRecord(holds, first and fence or last, waiting)
if waiting then
for name, verdict in pairs(verdicts) do
if verdict == 'unreachable' then suspend(name) end
end
if first and first.wasOwed then
first.wasOwed.state = 'live'
writeProcess(first.process, first.wasOwed)
end
end
for _, hold in ipairs(holds) do
if hold.process ~= caller then
redis.call('PUBLISH', channels .. hold.process, 'granted ' .. hold.id .. ' ' .. digits(fence) .. ' ' .. hold.ends)
end
end
return holds, first and fence or last, waiting
end
local function withClaims(reply, holds, fence)
for _, hold in ipairs(holds) do
if hold.kind == 'claim' and hold.process == caller and hold.id ~= holdId then
reply[#reply + 1] = hold.id
reply[#reply + 1] = fence
reply[#reply + 1] = hold.ends
end
end
return reply
end
if isCancelled then return {'cancelled', nowMs, 0, 0, ''} end
local holds, last, waiting = readRecord(text)
local function granted(hold)
return withClaims({'granted', nowMs, last, hold.ends, hold.kind}, holds, last)
end
local function grantNow(fence)
local hold = {id = holdId, ends = nowMs + leaseMs, kind = 'lease', owner = owner, process = caller}
holds[#holds + 1] = hold
last = fence
writeRecord(holds, last, waiting)
return granted(hold)
end
local function keepLive()
local process = unpackProcess(redis.call('HGET', meta, 'p' .. caller))
local untilMs = nowMs + livenessMs
if process and process.state == 'live' and untilMs - process.untilMs < livenessMs / 10 then return end
redis.call('HDEL', meta, 'p' .. caller)
local state = (process and process.state ~= 'live') and 'owed' or 'live'
writeProcess(caller, {untilMs = math.max(untilMs, process and process.untilMs or 0), state = state})
for _, key in ipairs({queue, meta}) do
if redis.call('PTTL', key) < tonumber(livenessMs) then redis.call('PEXPIRE', key, livenessMs) end
end
end
local isQueued = redis.call('ZSCORE', queue, ownMember) ~= false
if isQueued then
waiting = true
keepLive()
end
if waiting and #holds == 0 then holds, last, waiting = handOff(last) end
for _, hold in ipairs(holds) do
if hold.id == holdId then return granted(hold) end
end
if #holds == 0 or holds[1].owner == owner then
if isQueued then dequeue(ownMember, owner) end
return grantNow(#holds == 0 and math.max(last + 1, nowUs) or last)
end
local freeAt = nowMs
for _, hold in ipairs(holds) do freeAt = math.max(freeAt, hold.ends) end
local status, isNew = 'queued', 0
if not queueing then
status = 'refused'
elseif not isQueued then
if waiting and redis.call('ZCARD', queue) >= tonumber(maxWaiters) then
status = 'full'
else
isNew = 1
redis.call('HINCRBY', meta, 'o' .. owner, 1)
redis.call('ZADD', queue, digits(nowUs), ownMember)
keepLive()
if not waiting then writeRecord(holds, last, true) end
end
end
return withClaims({status, nowMs, freeAt, isNew, ''}, holds, last)`,
};

export const forceRelease: RedisScript = {
  name: 'force-release',
  sha1: '873c9f75722b26b96e0d6eecec295d445b6b319b',
  source: `local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])
local record, queue, meta = KEYS[1], KEYS[2], KEYS[3]
local holdId, whose = ARGV[1], ARGV[2]
local owner, caller = string.match(whose, '^(%S+) (%S+)$')
local claimMs, maxWaiters, livenessMs, channels = string.match(ARGV[3], '^(%d+) (%d+) (%d+) (%S+)$')
local ownMember = holdId .. ' ' .. whose .. ' ' .. claimMs
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local nowUs = time[1] * 1000000 + time[2]
local scanLimit = 4096
local function digits(number)
return string.format('%.0f', number)
end
local function unpackWaiter(member)
local id, owner, process, claim = string.match(member, '^(%S+) (%S+) (%S+) (%d+)$')
return {id = id, owner = owner, process = process, claim = tonumber(claim), member = member}
end
local function unpackProcess(value)
if not value then return nil end
local untilMs, state = string.match(value, '^(%d+) (%a+)$')
return {untilMs = tonumber(untilMs), state = state}
end
local function writeProcess(name, process)
redis.call('HSET', meta, 'p' .. name, process.untilMs .. ' ' .. process.state)
end
local function suspend(name)
local process = unpackProcess(redis.call('HGET', meta, 'p' .. name))
if process then
process.state = 'suspended'
writeProcess(name, process)
end
end
local lapsed = {}
local function readRecord(text)
local holds = {}
if not text then return holds, 0, false end
for id, ends, kind, owner, process in string.gmatch(text, '\\n(%S+) (%d+) (%a+) (%S+) (%S+)') do
local hold = {id = id, ends = tonumber(ends), kind = kind, owner = owner, process = process}
if hold.ends > nowMs then
holds[#holds + 1] = hold
elseif kind == 'claim' and process ~= caller then
lapsed[process] = true
end
end
local last, flag = string.match(text, '^(%d+) (.)')
return holds, tonumber(last), flag == 'q'
end
local function writeRecord(holds, last, waiting)
local text = digits(last) .. (waiting and ' q' or ' -')
local latest = math.max(nowMs, math.ceil(last / 1000))
for _, hold in ipairs(holds) do
latest = math.max(latest, hold.ends)
text = text .. '\\n' .. hold.id .. ' ' .. hold.ends .. ' ' .. hold.kind .. ' ' .. hold.owner .. ' ' .. hold.process
end
redis.call('DEL', record)
redis.call('SET', record, text, 'PX', latest - nowMs + 3600000)
for name in pairs(lapsed) do suspend(name) end
end
local function dequeue(member, owner)
if redis.call('ZREM', queue, member) == 0 then return false end
if redis.call('EXISTS', queue) == 0 then
redis.call('DEL', meta)
return true
end
if redis.call('HINCRBY', meta, 'o' .. owner, -1) <= 0 then redis.call('HDEL', meta, 'o' .. owner) end
return true
end
local function judge(process, name)
if not process or process.untilMs <= nowMs then return 'gone' end
if name == caller then return 'live' end
if process.state == 'suspended' or lapsed[name] then return 'passed' end
if process.state == 'owed' then return 'live' end
return redis.call('PUBSUB', 'NUMSUB', channels .. name)[2] > 0 and 'live' or 'unreachable'
end
local function nextLive()
local verdicts, from, size, seen = {}, 0, 1, 0
while seen < scanLimit do
local page = redis.call('ZRANGE', queue, from, from + size - 1)
if #page == 0 then break end
for _, member in ipairs(page) do
local waiter = unpackWaiter(member)
local verdict = verdicts[waiter.process]
if not verdict then
local known = redis.call('HMGET', meta, 'p' .. waiter.process, 'o' .. waiter.owner)
local process = unpackProcess(known[1])
verdict = judge(process, waiter.process)
verdicts[waiter.process] = verdict
waiter.wasOwed = verdict == 'live' and process.state == 'owed' and process
waiter.isAlone = known[2] == '1'
end
if verdict == 'live' then return waiter, verdicts end
if verdict == 'gone' then dequeue(member, waiter.owner) else from = from + 1 end
end
seen = seen + #page
size = 64
end
return nil, verdicts
end
local function withOwner(first)
local granted = {first}
if first.isAlone then return granted end
for _, member in ipairs(redis.call('ZRANGE', queue, 0, scanLimit - 1)) do
local waiter = unpackWaiter(member)
if waiter.owner == first.owner and waiter.id ~= first.id then granted[#granted + 1] = waiter end
end
return granted
end
local function handOff(last)
local holds, fence = {}, math.max(last + 1, nowUs)
local first, verdicts = nextLive()
local granted = first and withOwner(first) or {}
if first and first.isAlone then
redis.call('ZREM', queue, first.member)
redis.call('HDEL', meta, 'o' .. first.owner)
else
for _, waiter in ipairs(granted) do dequeue(waiter.member, waiter.owner) end
end
for _, waiter in ipairs(granted) do
holds[#holds + 1] = {id = waiter.id, ends = nowMs + waiter.claim, kind = 'claim', owner = waiter.owner, process = waiter.process}
end
local waiting = redis.call('EXISTS', queue) == 1
if not waiting then redis.call('DEL', meta) end
writeRecord(holds, first and fence or last, waiting)
if waiting then
for name, verdict in pairs(verdicts) do
if verdict == 'unreachable' then suspend(name) end
end
if first and first.wasOwed then
first.wasOwed.state = 'live'
writeProcess(first.process, first.wasOwed)
end
end
for _, hold in ipairs(holds) do
if hold.process ~= caller then
redis.call('PUBLISH', channels .. hold.process, 'granted ' .. hold.id .. ' ' .. digits(fence) .. ' ' .. hold.ends)
end
end
return holds, first and fence or last, waiting
end
local function withClaims(reply, holds, fence)
for _, hold in ipairs(holds) do
if hold.kind == 'claim' and hold.process == caller and hold.id ~= holdId then
reply[#reply + 1] = hold.id
reply[#reply + 1] = fence
reply[#reply + 1] = hold.ends
end
end
return reply
end
local taken, last = readRecord(text)
if #taken == 0 or last ~= tonumber(ARGV[4]) then return 0 end
handOff(last)
for _, hold in ipairs(taken) do redis.call('PUBLISH', channels .. hold.process, 'lost ' .. hold.id) end
return 1`,
};

export const inspect: RedisScript = {
  name: 'inspect',
  sha1: '9208cb122f5c4c631acb18f5e729479bef0d7766',
  source: `local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local holds, waiters = {}, {}
local function append(list, ...)
for _, part in ipairs({...}) do list[#list + 1] = part end
end
local text = redis.call('GET', KEYS[1]) or ''
local fence = tonumber(string.match(text, '^%d+'))
for id, ends, kind, owner in string.gmatch(text, '\\n(%S+) (%d+) (%a+) (%S+)') do
if tonumber(ends) > nowMs then append(holds, id, owner, fence, tonumber(ends), kind) end
end
local members = redis.call('ZRANGE', KEYS[2], 0, 999, 'WITHSCORES')
for i = 1, #members, 2 do
local id, owner = string.match(members[i], '^(%S+) (%S+)')
append(waiters, id, owner, tonumber(members[i + 1]))
end
return {nowMs, holds, waiters}`,
};

export const release: RedisScript = {
  name: 'release',
  sha1: 'a7fa39ecc735ad67bd1509232a41a260c0b9c20e',
  source: `local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])
local remember = ARGV[4] ~= '0'
local lastFence, id, endMs = string.match(text or '', '^(%d+) %-\\n(%S+) (%d+) %a+ %S+ %S+$')
if id == ARGV[1] and not remember then
local atMs = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], lastFence .. ' -', 'PX', math.max(0, math.ceil(lastFence / 1000) - atMs) + 3600000)
return tonumber(endMs) > atMs and atMs or -atMs
end
local record, queue, meta = KEYS[1], KEYS[2], KEYS[3]
local holdId, whose = ARGV[1], ARGV[2]
local owner, caller = string.match(whose, '^(%S+) (%S+)$')
local claimMs, maxWaiters, livenessMs, channels = string.match(ARGV[3], '^(%d+) (%d+) (%d+) (%S+)$')
local ownMember = holdId .. ' ' .. whose .. ' ' .. claimMs
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local nowUs = time[1] * 1000000 + time[2]
local scanLimit = 4096
local function digits(number)
return string.format('%.0f', number)
end
local function unpackWaiter(member)
local id, owner, process, claim = string.match(member, '^(%S+) (%S+) (%S+) (%d+)$')
return {id = id, owner = owner, process = process, claim = tonumber(claim), member = member}
end
local function unpackProcess(value)
if not value then return nil end
local untilMs, state = string.match(value, '^(%d+) (%a+)$')
return {untilMs = tonumber(untilMs), state = state}
end
local function writeProcess(name, process)
redis.call('HSET', meta, 'p' .. name, process.untilMs .. ' ' .. process.state)
end
local function suspend(name)
local process = unpackProcess(redis.call('HGET', meta, 'p' .. name))
if process then
process.state = 'suspended'
writeProcess(name, process)
end
end
local lapsed = {}
local function readRecord(text)
local holds = {}
if not text then return holds, 0, false end
for id, ends, kind, owner, process in string.gmatch(text, '\\n(%S+) (%d+) (%a+) (%S+) (%S+)') do
local hold = {id = id, ends = tonumber(ends), kind = kind, owner = owner, process = process}
if hold.ends > nowMs then
holds[#holds + 1] = hold
elseif kind == 'claim' and process ~= caller then
lapsed[process] = true
end
end
local last, flag = string.match(text, '^(%d+) (.)')
return holds, tonumber(last), flag == 'q'
end
local function writeRecord(holds, last, waiting)
local text = digits(last) .. (waiting and ' q' or ' -')
local latest = math.max(nowMs, math.ceil(last / 1000))
for _, hold in ipairs(holds) do
latest = math.max(latest, hold.ends)
text = text .. '\\n' .. hold.id .. ' ' .. hold.ends .. ' ' .. hold.kind .. ' ' .. hold.owner .. ' ' .. hold.process
end
redis.call('DEL', record)
redis.call('SET', record, text, 'PX', latest - nowMs + 3600000)
for name in pairs(lapsed) do suspend(name) end
end
local function dequeue(member, owner)
if redis.call('ZREM', queue, member) == 0 then return false end
if redis.call('EXISTS', queue) == 0 then
redis.call('DEL', meta)
return true
end
if redis.call('HINCRBY', meta, 'o' .. owner, -1) <= 0 then redis.call('HDEL', meta, 'o' .. owner) end
return true
end
local function judge(process, name)
if not process or process.untilMs <= nowMs then return 'gone' end
if name == caller then return 'live' end
if process.state == 'suspended' or lapsed[name] then return 'passed' end
if process.state == 'owed' then return 'live' end
return redis.call('PUBSUB', 'NUMSUB', channels .. name)[2] > 0 and 'live' or 'unreachable'
end
local function nextLive()
local verdicts, from, size, seen = {}, 0, 1, 0
while seen < scanLimit do
local page = redis.call('ZRANGE', queue, from, from + size - 1)
if #page == 0 then break end
for _, member in ipairs(page) do
local waiter = unpackWaiter(member)
local verdict = verdicts[waiter.process]
if not verdict then
local known = redis.call('HMGET', meta, 'p' .. waiter.process, 'o' .. waiter.owner)
local process = unpackProcess(known[1])
verdict = judge(process, waiter.process)
verdicts[waiter.process] = verdict
waiter.wasOwed = verdict == 'live' and process.state == 'owed' and process
waiter.isAlone = known[2] == '1'
end
if verdict == 'live' then return waiter, verdicts end
if verdict == 'gone' then dequeue(member, waiter.owner) else from = from + 1 end
end
seen = seen + #page
size = 64
end
return nil, verdicts
end
local function withOwner(first)
local granted = {first}
if first.isAlone then return granted end
for _, member in ipairs(redis.call('ZRANGE', queue, 0, scanLimit - 1)) do
local waiter = unpackWaiter(member)
if waiter.owner == first.owner and waiter.id ~= first.id then granted[#granted + 1] = waiter end
end
return granted
end
local function handOff(last)
local holds, fence = {}, math.max(last + 1, nowUs)
local first, verdicts = nextLive()
local granted = first and withOwner(first) or {}
if first and first.isAlone then
redis.call('ZREM', queue, first.member)
redis.call('HDEL', meta, 'o' .. first.owner)
else
for _, waiter in ipairs(granted) do dequeue(waiter.member, waiter.owner) end
end
for _, waiter in ipairs(granted) do
holds[#holds + 1] = {id = waiter.id, ends = nowMs + waiter.claim, kind = 'claim', owner = waiter.owner, process = waiter.process}
end
local waiting = redis.call('EXISTS', queue) == 1
if not waiting then redis.call('DEL', meta) end
writeRecord(holds, first and fence or last, waiting)
if waiting then
for name, verdict in pairs(verdicts) do
if verdict == 'unreachable' then suspend(name) end
end
if first and first.wasOwed then
first.wasOwed.state = 'live'
writeProcess(first.process, first.wasOwed)
end
end
for _, hold in ipairs(holds) do
if hold.process ~= caller then
redis.call('PUBLISH', channels .. hold.process, 'granted ' .. hold.id .. ' ' .. digits(fence) .. ' ' .. hold.ends)
end
end
return holds, first and fence or last, waiting
end
local function withClaims(reply, holds, fence)
for _, hold in ipairs(holds) do
if hold.kind == 'claim' and hold.process == caller and hold.id ~= holdId then
reply[#reply + 1] = hold.id
reply[#reply + 1] = fence
reply[#reply + 1] = hold.ends
end
end
return reply
end
local holds, last, waiting = readRecord(text)
local status, kept = 'absent', {}
for _, hold in ipairs(holds) do
if hold.id == holdId then status = 'released' else kept[#kept + 1] = hold end
end
if status == 'absent' then
local before = redis.call('GET', KEYS[4])
if before then return withClaims({before, nowMs}, holds, last) end
if dequeue(ownMember, owner) then
status = 'cancelled'
elseif string.find(text or '', '\\n' .. holdId .. ' ', 1, true) then
status = 'expired'
end
end
if waiting and #kept == 0 then
kept, last = handOff(last)
elseif status == 'released' or status == 'expired' then
writeRecord(kept, last, waiting)
end
if remember then
redis.call('DEL', KEYS[4])
redis.call('SET', KEYS[4], status, 'PX', ARGV[4])
end
return withClaims({status, nowMs}, kept, last)`,
};

export const renew: RedisScript = {
  name: 'renew',
  sha1: '5121c29d752992d1eae4c42060bd9a2696f2eb13',
  source: `local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])
local fence, leaseMs = tonumber(ARGV[4]), tonumber(ARGV[5])
local record, queue, meta = KEYS[1], KEYS[2], KEYS[3]
local holdId, whose = ARGV[1], ARGV[2]
local owner, caller = string.match(whose, '^(%S+) (%S+)$')
local claimMs, maxWaiters, livenessMs, channels = string.match(ARGV[3], '^(%d+) (%d+) (%d+) (%S+)$')
local ownMember = holdId .. ' ' .. whose .. ' ' .. claimMs
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local nowUs = time[1] * 1000000 + time[2]
local scanLimit = 4096
local function digits(number)
return string.format('%.0f', number)
end
local function unpackWaiter(member)
local id, owner, process, claim = string.match(member, '^(%S+) (%S+) (%S+) (%d+)$')
return {id = id, owner = owner, process = process, claim = tonumber(claim), member = member}
end
local function unpackProcess(value)
if not value then return nil end
local untilMs, state = string.match(value, '^(%d+) (%a+)$')
return {untilMs = tonumber(untilMs), state = state}
end
local function writeProcess(name, process)
redis.call('HSET', meta, 'p' .. name, process.untilMs .. ' ' .. process.state)
end
local function suspend(name)
local process = unpackProcess(redis.call('HGET', meta, 'p' .. name))
if process then
process.state = 'suspended'
writeProcess(name, process)
end
end
local lapsed = {}
local function readRecord(text)
local holds = {}
if not text then return holds, 0, false end
for id, ends, kind, owner, process in string.gmatch(text, '\\n(%S+) (%d+) (%a+) (%S+) (%S+)') do
local hold = {id = id, ends = tonumber(ends), kind = kind, owner = owner, process = process}
if hold.ends > nowMs then
holds[#holds + 1] = hold
elseif kind == 'claim' and process ~= caller then
lapsed[process] = true
end
end
local last, flag = string.match(text, '^(%d+) (.)')
return holds, tonumber(last), flag == 'q'
end
local function writeRecord(holds, last, waiting)
local text = digits(last) .. (waiting and ' q' or ' -')
local latest = math.max(nowMs, math.ceil(last / 1000))
for _, hold in ipairs(holds) do
latest = math.max(latest, hold.ends)
text = text .. '\\n' .. hold.id .. ' ' .. hold.ends .. ' ' .. hold.kind .. ' ' .. hold.owner .. ' ' .. hold.process
end
redis.call('DEL', record)
redis.call('SET', record, text, 'PX', latest - nowMs + 3600000)
for name in pairs(lapsed) do suspend(name) end
end
local function dequeue(member, owner)
if redis.call('ZREM', queue, member) == 0 then return false end
if redis.call('EXISTS', queue) == 0 then
redis.call('DEL', meta)
return true
end
if redis.call('HINCRBY', meta, 'o' .. owner, -1) <= 0 then redis.call('HDEL', meta, 'o' .. owner) end
return true
end
local function judge(process, name)
if not process or process.untilMs <= nowMs then return 'gone' end
if name == caller then return 'live' end
if process.state == 'suspended' or lapsed[name] then return 'passed' end
if process.state == 'owed' then return 'live' end
return redis.call('PUBSUB', 'NUMSUB', channels .. name)[2] > 0 and 'live' or 'unreachable'
end
local function nextLive()
local verdicts, from, size, seen = {}, 0, 1, 0
while seen < scanLimit do
local page = redis.call('ZRANGE', queue, from, from + size - 1)
if #page == 0 then break end
for _, member in ipairs(page) do
local waiter = unpackWaiter(member)
local verdict = verdicts[waiter.process]
if not verdict then
local known = redis.call('HMGET', meta, 'p' .. waiter.process, 'o' .. waiter.owner)
local process = unpackProcess(known[1])
verdict = judge(process, waiter.process)
verdicts[waiter.process] = verdict
waiter.wasOwed = verdict == 'live' and process.state == 'owed' and process
waiter.isAlone = known[2] == '1'
end
if verdict == 'live' then return waiter, verdicts end
if verdict == 'gone' then dequeue(member, waiter.owner) else from = from + 1 end
end
seen = seen + #page
size = 64
end
return nil, verdicts
end
local function withOwner(first)
local granted = {first}
if first.isAlone then return granted end
for _, member in ipairs(redis.call('ZRANGE', queue, 0, scanLimit - 1)) do
local waiter = unpackWaiter(member)
if waiter.owner == first.owner and waiter.id ~= first.id then granted[#granted + 1] = waiter end
end
return granted
end
local function handOff(last)
local holds, fence = {}, math.max(last + 1, nowUs)
local first, verdicts = nextLive()
local granted = first and withOwner(first) or {}
if first and first.isAlone then
redis.call('ZREM', queue, first.member)
redis.call('HDEL', meta, 'o' .. first.owner)
else
for _, waiter in ipairs(granted) do dequeue(waiter.member, waiter.owner) end
end
for _, waiter in ipairs(granted) do
holds[#holds + 1] = {id = waiter.id, ends = nowMs + waiter.claim, kind = 'claim', owner = waiter.owner, process = waiter.process}
end
local waiting = redis.call('EXISTS', queue) == 1
if not waiting then redis.call('DEL', meta) end
writeRecord(holds, first and fence or last, waiting)
if waiting then
for name, verdict in pairs(verdicts) do
if verdict == 'unreachable' then suspend(name) end
end
if first and first.wasOwed then
first.wasOwed.state = 'live'
writeProcess(first.process, first.wasOwed)
end
end
for _, hold in ipairs(holds) do
if hold.process ~= caller then
redis.call('PUBLISH', channels .. hold.process, 'granted ' .. hold.id .. ' ' .. digits(fence) .. ' ' .. hold.ends)
end
end
return holds, first and fence or last, waiting
end
local function withClaims(reply, holds, fence)
for _, hold in ipairs(holds) do
if hold.kind == 'claim' and hold.process == caller and hold.id ~= holdId then
reply[#reply + 1] = hold.id
reply[#reply + 1] = fence
reply[#reply + 1] = hold.ends
end
end
return reply
end
local holds, last, waiting = readRecord(text)
for _, hold in ipairs(holds) do
if hold.id == holdId and last == fence then
hold.ends = math.max(hold.ends, nowMs + leaseMs)
hold.kind = 'lease'
writeRecord(holds, last, waiting)
return {'renewed', nowMs, hold.ends}
end
end
return {'lost', nowMs}`,
};
