// Generated from lua/*.lua by `node scripts/build-lua.mjs`. Do not edit.
import type { RedisScript } from './redis-scripts.ts';

export const acquire: RedisScript = {
  name: 'acquire',
  sha1: '14ecd741e0c41360eb0a5f527e84d5e5625646f9',
  source: `local time = redis.call('TIME')
local known = redis.call('MGET', KEYS[4], KEYS[1])
local isCancelled, text = known[1], known[2]
local last = not text and '0' or #text == 18 and string.sub(text, 17) == ' -' and string.sub(text, 1, 16)
local fence = time[1] .. string.sub('00000' .. time[2], -6)
if last and last < fence and not isCancelled then
local ends = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[4]
local hold = fence .. ' -\\n' .. ARGV[1] .. ' ' .. ends .. ' lease ' .. ARGV[2]
if redis.call('SET', KEYS[1], hold, 'PX', ARGV[6], text and 'XX' or 'NX') then return fence end
redis.call('GET', KEYS[1])
end
local leaseMs, queueing = tonumber(ARGV[4]), ARGV[5] == '1'
local held, id, endMs, kind, holder = string.match(text or '', '^(%d+) q\\n(%S+) (%d+) (%a+) (%S+ %S+)$')
if held and queueing and not isCancelled then
local atMs = time[1] * 1000 + math.floor(time[2] / 1000)
local owner, process = string.match(ARGV[2], '^(%S+) (%S+)$')
local claimMs, maxWaiters, livenessMs = string.match(ARGV[3], '^(%d+) (%d+) (%d+) ')
local waiters = redis.call('ZCARD', KEYS[2])
local known = redis.call('ZMSCORE', KEYS[3], 'p' .. process, 's' .. process)
local isLive = known[1] and not known[2] and known[1] - atMs >= tonumber(livenessMs)
local isOther = tonumber(endMs) > atMs and string.sub(holder, 1, #owner + 1) ~= owner .. ' '
if isLive and isOther and waiters > 0 and waiters < tonumber(maxWaiters) then
local member = ARGV[1] .. ' ' .. ARGV[2] .. ' ' .. claimMs
if redis.pcall('ZADD', KEYS[2], 'NX', string.format('%.0f', time[1] * 1000000 + time[2]), member) == 1 then
redis.call('ZINCRBY', KEYS[3], 1, 'o' .. owner)
local isClaim = kind == 'claim' and string.sub(holder, -#process) == process
if not isClaim then return {'queued', atMs, tonumber(endMs), 1, ''} end
return {'queued', atMs, tonumber(endMs), 1, '', id, tonumber(held), tonumber(endMs)}
end
end
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
local function suspend(name)
if redis.call('ZSCORE', meta, 'p' .. name) then redis.call('ZADD', meta, 1, 's' .. name) end
end
local lapsed = {}
local function readRecord(text)
local holds = {}
if not text or text == '' then return holds, 0, false end
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
if tonumber(redis.call('ZINCRBY', meta, -1, 'o' .. owner)) <= 0 then redis.call('ZREM', meta, 'o' .. owner) end
return true
end
local function judge(name, untilMs, state)
if not untilMs or tonumber(untilMs) <= nowMs then return 'gone' end
if name == caller then return 'live' end
if state == '1' or lapsed[name] then return 'passed' end
if state == '2' then return 'live' end
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
local name = waiter.process
local known = redis.call('ZMSCORE', meta, 'p' .. name, 's' .. name, 'o' .. waiter.owner)
verdict = judge(name, known[1], known[2])
verdicts[name] = verdict
waiter.wasOwed = known[2] == '2'
waiter.isAlone = known[3] == '1'
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
redis.call('ZREM', meta, 'o' .. first.owner)
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
if first and first.wasOwed then redis.call('ZREM', meta, 's' .. first.process) end
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
if isCancelled then return withClaims({'cancelled', nowMs, 0, 0, ''}, holds, last) end
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
local known = redis.call('ZMSCORE', meta, 'p' .. caller, 's' .. caller)
local spanMs = math.ceil(livenessMs * 1.1)
if known[1] and not known[2] and known[1] - nowMs >= tonumber(livenessMs) then return end
redis.call('ZREM', meta, 'p' .. caller)
redis.call('ZADD', meta, math.max(nowMs + spanMs, known[1] or 0), 'p' .. caller)
if known[2] then redis.call('ZADD', meta, 2, 's' .. caller) end
for _, key in ipairs({queue, meta}) do
if redis.call('PTTL', key) < spanMs then redis.call('PEXPIRE', key, spanMs) end
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
redis.call('ZINCRBY', meta, 1, 'o' .. owner)
redis.call('ZADD', queue, digits(nowUs), ownMember)
keepLive()
if not waiting then writeRecord(holds, last, true) end
end
end
return withClaims({status, nowMs, freeAt, isNew, ''}, holds, last)`,
};

export const forceRelease: RedisScript = {
  name: 'force-release',
  sha1: '514542ad1912b3be2e5f11af109062413f453044',
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
local function suspend(name)
if redis.call('ZSCORE', meta, 'p' .. name) then redis.call('ZADD', meta, 1, 's' .. name) end
end
local lapsed = {}
local function readRecord(text)
local holds = {}
if not text or text == '' then return holds, 0, false end
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
if tonumber(redis.call('ZINCRBY', meta, -1, 'o' .. owner)) <= 0 then redis.call('ZREM', meta, 'o' .. owner) end
return true
end
local function judge(name, untilMs, state)
if not untilMs or tonumber(untilMs) <= nowMs then return 'gone' end
if name == caller then return 'live' end
if state == '1' or lapsed[name] then return 'passed' end
if state == '2' then return 'live' end
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
local name = waiter.process
local known = redis.call('ZMSCORE', meta, 'p' .. name, 's' .. name, 'o' .. waiter.owner)
verdict = judge(name, known[1], known[2])
verdicts[name] = verdict
waiter.wasOwed = known[2] == '2'
waiter.isAlone = known[3] == '1'
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
redis.call('ZREM', meta, 'o' .. first.owner)
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
if first and first.wasOwed then redis.call('ZREM', meta, 's' .. first.process) end
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
  sha1: '514930accff0456d9022557be6212b6873491f51',
  source: `local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1]) or ''
local remember = ARGV[4] ~= '0'
local isOnly = string.find(text, '\\n' .. ARGV[1] .. ' ', 18, true) == 19 and not string.find(text, '\\n', 20, true)
local fence = string.sub(text, 1, 16)
if isOnly and string.sub(text, 17, 18) == ' -' and fence < time[1] .. string.sub('00000' .. time[2], -6) then
local atMs = time[1] * 1000 + math.floor(time[2] / 1000)
local freed = redis.pcall('SET', KEYS[1], fence .. ' -', 'PX', 3600000)
if freed.err then
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], fence .. ' -', 'PX', 3600000)
end
local isReleased = tonumber(string.match(text, '%d+', 21 + #ARGV[1])) > atMs
if remember then redis.call('SET', KEYS[4], isReleased and 'released' or 'expired', 'PX', ARGV[4]) end
return isReleased and atMs or -atMs
end
if isOnly and string.sub(text, 17, 18) == ' q' then
local page = redis.call('ZRANGE', KEYS[2], 0, 1)
local waiter, owner, process, claimMs = string.match(page[1] or '', '^(%S+) (%S+) (%S+) (%d+)$')
local known = waiter and redis.call('ZMSCORE', KEYS[3], 'p' .. process, 's' .. process, 'o' .. owner) or {}
local atMs = time[1] * 1000 + math.floor(time[2] / 1000)
if known[1] and tonumber(known[1]) > atMs and not known[2] and known[3] == '1' then
local isOwn = string.sub(ARGV[2], -#process) == process
local channel = string.match(ARGV[3], '(%S+)$') .. process
if isOwn or redis.call('PUBSUB', 'NUMSUB', channel)[2] > 0 then
local ends, isLast = atMs + claimMs, #page == 1
local fence = string.format('%.0f', math.max(fence + 1, time[1] * 1000000 + time[2]))
redis.call('ZREM', KEYS[2], page[1])
if isLast then redis.call('DEL', KEYS[3]) else redis.call('ZREM', KEYS[3], 'o' .. owner) end
local hold = waiter .. ' ' .. ends .. ' claim ' .. owner .. ' ' .. process
local keepMs = math.max(0, math.ceil(fence / 1000) - atMs) + claimMs + 3600000
redis.call('SET', KEYS[1], fence .. (isLast and ' -\\n' or ' q\\n') .. hold, 'PX', keepMs)
local status = tonumber(string.match(text, '%d+', 21 + #ARGV[1])) > atMs and 'released' or 'expired'
if remember then redis.call('SET', KEYS[4], status, 'PX', ARGV[4]) end
if isOwn then return {status, atMs, waiter, tonumber(fence), ends} end
redis.call('PUBLISH', channel, 'granted ' .. waiter .. ' ' .. fence .. ' ' .. ends)
return {status, atMs}
end
end
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
local function suspend(name)
if redis.call('ZSCORE', meta, 'p' .. name) then redis.call('ZADD', meta, 1, 's' .. name) end
end
local lapsed = {}
local function readRecord(text)
local holds = {}
if not text or text == '' then return holds, 0, false end
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
if tonumber(redis.call('ZINCRBY', meta, -1, 'o' .. owner)) <= 0 then redis.call('ZREM', meta, 'o' .. owner) end
return true
end
local function judge(name, untilMs, state)
if not untilMs or tonumber(untilMs) <= nowMs then return 'gone' end
if name == caller then return 'live' end
if state == '1' or lapsed[name] then return 'passed' end
if state == '2' then return 'live' end
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
local name = waiter.process
local known = redis.call('ZMSCORE', meta, 'p' .. name, 's' .. name, 'o' .. waiter.owner)
verdict = judge(name, known[1], known[2])
verdicts[name] = verdict
waiter.wasOwed = known[2] == '2'
waiter.isAlone = known[3] == '1'
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
redis.call('ZREM', meta, 'o' .. first.owner)
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
if first and first.wasOwed then redis.call('ZREM', meta, 's' .. first.process) end
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
elseif string.find(text, '\\n' .. holdId .. ' ', 1, true) then
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
  sha1: 'ecbd755744147f342fce614c876d4170dea3e2c5',
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
local function suspend(name)
if redis.call('ZSCORE', meta, 'p' .. name) then redis.call('ZADD', meta, 1, 's' .. name) end
end
local lapsed = {}
local function readRecord(text)
local holds = {}
if not text or text == '' then return holds, 0, false end
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
if tonumber(redis.call('ZINCRBY', meta, -1, 'o' .. owner)) <= 0 then redis.call('ZREM', meta, 'o' .. owner) end
return true
end
local function judge(name, untilMs, state)
if not untilMs or tonumber(untilMs) <= nowMs then return 'gone' end
if name == caller then return 'live' end
if state == '1' or lapsed[name] then return 'passed' end
if state == '2' then return 'live' end
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
local name = waiter.process
local known = redis.call('ZMSCORE', meta, 'p' .. name, 's' .. name, 'o' .. waiter.owner)
verdict = judge(name, known[1], known[2])
verdicts[name] = verdict
waiter.wasOwed = known[2] == '2'
waiter.isAlone = known[3] == '1'
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
redis.call('ZREM', meta, 'o' .. first.owner)
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
if first and first.wasOwed then redis.call('ZREM', meta, 's' .. first.process) end
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
