// Generated from lua/*.lua by `node scripts/build-lua.mjs`. Do not edit.
import type { RedisScript } from './scripts.ts';

export const acquire: RedisScript = {
  name: 'acquire',
  sha1: '23c6225be6a184ccd74c9861047f8fa559a6d569',
  source: `local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])
local fence = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))
local waitingFlag, rememberingFlag, lineFeed, kind
if text then waitingFlag, rememberingFlag, lineFeed, kind = string.byte(text, 17, 20) end
local isFree = not text
or waitingFlag == 45 and rememberingFlag == 45 and (not lineFeed or kind == 35) and text < fence
if isFree and not (lineFeed and string.find(text, ARGV[1], 19, true)) and not (ARGV[3] and ARGV[3] > fence) then
local releases = lineFeed and string.sub(text, 19) or ''
local hold = fence .. '--\\n' .. string.sub(ARGV[2], 1, 15) .. ARGV[1] .. releases
local isShort = string.find(ARGV[2], '+000000', 2, true) == 2
redis.call('SET', KEYS[1], hold, 'PX', isShort and '4600000' or string.sub(ARGV[2], 3, 14) + 3600000)
return fence
end
local isWritten = kind == 119 or kind == 87
if isWritten and (waitingFlag == 45 or waitingFlag == 113) and rememberingFlag == 45 then
local atMs, endMs = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(string.sub(text, 21, 33))
if string.byte(text, 21) == 43 then endMs = endMs + string.sub(text, 1, 13) end
local process, owner, id = string.match(text, '^(%S+) (%S+) (%S+)', 35)
local ownProcess, ownOwner = string.match(ARGV[1], '^(%S+) (%S+)')
local flag, wants, maxWaiters, livenessMs = string.match(ARGV[2], '^(%d) (%a %d+ 0) (%d+) (%d+)', 16)
local line = string.find(text, '\\n', 35, true)
local isOnly = not line or string.byte(text, line + 1) == 35
local isNew = isOnly and not string.find(text, ARGV[1], 19, true)
if isNew and flag == '1' and owner ~= ownOwner and endMs > atMs then
local place = string.format('%.0f', time[1] * 1000000 + time[2] - 1e16)
local member, ownMark, ahead = ARGV[1] .. ' ' .. wants, ':o' .. ownOwner, nil
if waitingFlag == 113 then
local known = redis.call('ZMSCORE', KEYS[2], ':p' .. ownProcess, ':s' .. ownProcess)
local isLive = known[1] and not known[2] and known[1] - atMs >= tonumber(livenessMs)
if isLive and redis.call('ZCARD', KEYS[2]) < tonumber(maxWaiters) then
if redis.pcall('ZADD', KEYS[2], 'NX', place, member) == 1 then
redis.call('ZINCRBY', KEYS[2], 1, ownMark)
ahead = redis.call('ZCOUNT', KEYS[2], '-inf', '(' .. place)
end
end
elseif tonumber(maxWaiters) > 0 and not string.find(ARGV[2], '{', 16, true) and redis.call('ZCARD', KEYS[2]) == 0 then
local spanMs = math.ceil(livenessMs * 1.1)
if redis.pcall('ZADD', KEYS[2], place, member, 1, ownMark, atMs + spanMs, ':p' .. ownProcess) == 3 then
redis.call('PEXPIRE', KEYS[2], spanMs)
local rest = line or #text + 1
local alone = string.byte(wants) == 119 and '\\n?' .. member .. ' ' .. atMs + spanMs or ''
local head = string.sub(text, 1, 16) .. 'q' .. string.sub(text, 18, rest - 1)
redis.call('SET', KEYS[1], head .. alone .. string.sub(text, rest), 'KEEPTTL')
ahead = 0
end
end
local hasClaim = kind == 87 and process == ownProcess
if ahead and not hasClaim then return {'queued', atMs, endMs, 1, ahead, 0} end
if ahead then
return {'queued', atMs, endMs, 1, ahead, 0, id, tonumber(string.sub(text, 1, 16)), endMs}
end
end
end
local isRead = kind == 33 and (rememberingFlag == 45 or rememberingFlag == 103)
local isOpen = isRead and waitingFlag == 45 and string.byte(ARGV[2]) == 114
if isOpen and string.byte(redis.call('ZRANGE', KEYS[2], 0, 0)[1] or ':') == 58 then
local atMs, leaseMs = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(string.sub(ARGV[2], 3, 14))
local earliest, ends = string.sub(text, 21, 33), atMs + leaseMs .. ''
local over = string.find(text, '\\n#', 33 + 1, true) or #text + 1
local own = string.find(text, string.match(ARGV[1], ' %S+ '), 33 + 1, true)
local isNew = not own or own > over and not string.find(text, ARGV[1], over, true)
if isNew and rememberingFlag == 103 then
local id = string.match(ARGV[1], '%S+$')
local known = redis.call('ZMSCORE', KEYS[2], ':gr' .. id, ':ge' .. id, ':gc' .. id, ':ga' .. id)
isNew = not (known[1] or known[2] or known[3] or known[4])
end
if isNew and tonumber(earliest) > atMs then
local rest = '\\nr' .. ends .. ' ' .. ARGV[1] .. string.sub(text, over)
if tonumber(redis.pcall('SETRANGE', KEYS[1], over - 1, rest)) then
if ends < earliest then redis.call('SETRANGE', KEYS[1], 21 - 1, ends) end
if redis.call('PTTL', KEYS[1]) < leaseMs + 3600000 then redis.call('PEXPIRE', KEYS[1], leaseMs + 3600000) end
return {'granted', atMs, tonumber(string.sub(text, 1, 16)), atMs + leaseMs, 0, 0}
end
end
end
if isRead and waitingFlag == 113 and string.byte(ARGV[2], 16) == 49 then
local wants, priority, maxWaiters, livenessMs = string.match(ARGV[2], '^(%a %d+ (%-?%d+)) (%d+) (%d+)', 18)
local atMs = time[1] * 1000 + math.floor(time[2] / 1000)
local over = string.find(text, '\\n#', 33 + 1, true) or #text + 1
local others = string.sub(text, 33 + 1, over - 1)
local process, owner = string.match(redis.call('ZRANGE', KEYS[2], 0, 0)[1] or '', '^(%S+) (%S+) %S+ w ')
local known = process and redis.call('ZMSCORE', KEYS[2], ':p' .. process, ':s' .. process) or {}
local isBarred = known[1] and tonumber(known[1]) > atMs and not known[2]
if isBarred and string.sub(ARGV[1], 1, #process + 1) ~= process .. ' ' then
local channel = string.match(ARGV[2], '(%S+)$') .. process
if not string.find(channel, '{', 1, true) then
isBarred = redis.call('PUBSUB', 'NUMSUB', channel)[2] ~= 0
elseif known[1] % 1 > 0 then
isBarred = redis.pcall('PUBSUB', 'SHARDNUMSUB', KEYS[1] .. ':' .. process)[2] ~= 0
end
end
isBarred = isBarred and not string.find(others, ' ' .. owner .. ' ', 1, true)
local caller, own, id = string.match(ARGV[1], '^(%S+) (%S+) (%S+)')
local isNew = not string.find(others, ' ' .. own .. ' ', 1, true) and not string.find(text, ARGV[1], over, true)
if isBarred and isNew and tonumber(string.sub(text, 21, 33)) > atMs then
local marks = {':p' .. caller, ':s' .. caller, ':gr' .. id, ':ge' .. id, ':gc' .. id, ':ga' .. id}
local known = redis.call('ZMSCORE', KEYS[2], unpack(marks))
local isLive = known[1] and known[1] - atMs >= tonumber(livenessMs)
for i = 2, 6 do isLive = isLive and not known[i] end
local place = string.format('%.0f', time[1] * 1000000 + time[2] - priority * 1e7 - 1e16)
local hasRoom = isLive and redis.call('ZCOUNT', KEYS[2], '-inf', '(0') < tonumber(maxWaiters)
if hasRoom and redis.pcall('ZADD', KEYS[2], 'NX', place, ARGV[1] .. ' ' .. wants) == 1 then
redis.call('ZINCRBY', KEYS[2], 1, ':o' .. own)
local freeAt = ''
for ends in string.gmatch(others, '\\nr(%d+)') do
if ends > freeAt then freeAt = ends end
end
local ahead = redis.call('ZCOUNT', KEYS[2], '-inf', '(' .. place)
return {'queued', atMs, tonumber(freeAt), 1, ahead, 0}
end
end
end
local record, queue = KEYS[1], KEYS[2]
local names = ARGV[1]
local caller, owner, holdId = string.match(names, '^(%S+) (%S+) (%S+)$')
local amount, flag, wants, maxWaiters, livenessMs, channels = string.match(
ARGV[2], '^(%S+) (%d) (%a %d+ %-?%d+) (%d+) (%d+) (%S+)$'
)
local mode, priority = string.match(wants, '^(%a) %d+ (%-?%d+)$')
local ownMember = names .. ' ' .. wants
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local nowUs = time[1] * 1000000 + time[2]
local function digits(number)
return string.format('%.0f', number)
end
local holds, last, waiting, remembering, receipts = {}, 0, false, false, ''
local alone
local lapsed = {}
if text then
local from = string.find(text, '\\n#', 19, true) or #text + 1
local at = 19
while at < from do
local next = string.find(text, '\\n', at + 1, true) or from
local kind, ends = string.byte(text, at + 1), string.sub(text, at + 2, at + 14)
if kind == 63 then
alone = string.match(text, '^%S+ %S+ %S+', at + 2)
elseif kind ~= 33 then
local isClaim = kind < 97
ends = string.byte(ends) == 43 and ends + string.sub(text, 1, 13) or tonumber(ends)
if ends > nowMs then
local mode = string.char(isClaim and kind + 32 or kind)
holds[#holds + 1] = {names = string.sub(text, at + 16, next - 1), ends = ends, mode = mode, isClaim = isClaim}
elseif isClaim then
lapsed[string.match(text, '^%S+', at + 16)] = true
end
end
at = next
end
last, receipts = tonumber(string.sub(text, 1, 16)), string.sub(text, from)
waiting = string.byte(text, 17) == 113
remembering = string.byte(text, 18) == 103
end
local hasLapsed = lapsed[caller]
local function untilMs(second, us, ms)
return second * 1000 + math.floor(us / 1000) + ms
end
local function suspend(name)
if redis.call('ZSCORE', queue, ':p' .. name) then redis.call('ZADD', queue, 1, ':s' .. name) end
end
local function allowGrowth()
redis.call('PEXPIRE', record, 3600000)
end
local function writeRecord()
local latest = math.max(nowMs, math.ceil(last / 1000))
if remembering then latest = math.max(latest, nowMs + redis.call('PTTL', queue)) end
local isLong = false
for second, us, ms in string.gmatch(receipts .. '\\n', '%a(%d+)%.(%d+) (%d%d%d%d%d%d%d+)\\n') do
local ends = untilMs(second, us, ms)
latest, isLong = math.max(latest, ends), isLong or ends > nowMs + 3600000
end
local flags = (waiting and 'q' or '-') .. (remembering and 'g' or isLong and 'l' or '-')
local parts = {string.format('%016.0f', last) .. flags, ''}
local isShared, earliest = #holds > 1, math.huge
for _, hold in ipairs(holds) do
latest, earliest = math.max(latest, hold.ends), math.min(earliest, hold.ends)
isShared = isShared and hold.mode == 'r' and not hold.isClaim
local kind = hold.isClaim and string.upper(hold.mode) or hold.mode
parts[#parts + 1] = '\\n' .. kind .. hold.ends .. ' '
parts[#parts + 1] = hold.names
end
parts[#parts + 1] = receipts
if isShared then parts[2] = '\\n!' .. earliest end
allowGrowth()
redis.call('SET', record, table.concat(parts), 'PX', latest - nowMs + 3600000)
if not waiting then return end
for name in pairs(lapsed) do suspend(name) end
end
local function unpackWaiter(member)
local names, process, owner, id, mode, claim = string.match(member, '^((%S+) (%S+) (%S+)) (%a) (%d+)')
return {
names = names, id = id, owner = owner, process = process, mode = mode, claim = tonumber(claim), member = member
}
end
local function keepQueue(ms)
if redis.call('PTTL', queue) < ms then redis.call('PEXPIRE', queue, ms) end
end
local function dequeue(member, owner)
if redis.call('ZREM', queue, member) == 0 then return false end
if tonumber(redis.call('ZINCRBY', queue, -1, ':o' .. owner)) <= 0 then redis.call('ZREM', queue, ':o' .. owner) end
return true
end
local function sweepQueue()
local first = redis.call('ZRANGE', queue, 0, 0)[1]
waiting = first ~= nil and string.sub(first, 1, 1) ~= ':'
if waiting then return end
if remembering then
redis.call('ZREMRANGEBYSCORE', queue, 0, '(' .. digits(1e15))
else
redis.call('DEL', queue)
end
end
local function admits(owner, mode)
local middle = ' ' .. owner .. ' '
for _, hold in ipairs(holds) do
if (mode == 'w' or hold.mode == 'w') and not string.find(hold.names, middle, 1, true) then return false end
end
return true
end
local function hasWriter()
for _, hold in ipairs(holds) do
if hold.mode == 'w' then return true end
end
return false
end
local function countOwn()
local count, middle = 0, ' ' .. owner .. ' '
for _, hold in ipairs(holds) do
if string.find(hold.names, middle, 1, true) then count = count + 1 end
end
return count
end
local function freeAt()
local latest = nowMs
for _, hold in ipairs(holds) do latest = math.max(latest, hold.ends) end
return latest
end
local function raiseFence(mode, least)
if #holds > 0 and (mode ~= 'w' or hasWriter()) then return end
last = math.max(last + 1, nowUs, least or 0)
for _, hold in ipairs(holds) do hold.mode = 's' end
end
local isCluster = string.find(channels, '{', 1, true)
local function listenersOf(name)
return redis.pcall('PUBSUB', 'SHARDNUMSUB', record .. ':' .. name)[2]
end
local function serverMark()
local id = redis.pcall('CLUSTER', 'MYID')
return type(id) == 'string' and (tonumber(string.sub(id, 1, 6), 16) % 2047 + 1) / 2048 or 0
end
local function judge(name, untilMs, state)
if not untilMs or tonumber(untilMs) <= nowMs then return 'gone' end
if name == caller then return 'live' end
if state == '1' or lapsed[name] then return 'passed' end
if state == '2' then return 'live' end
if not isCluster then return redis.call('PUBSUB', 'NUMSUB', channels .. name)[2] > 0 and 'live' or 'unreachable' end
local mark = untilMs % 1
return mark > 0 and listenersOf(name) == 0 and mark == serverMark() and 'unreachable' or 'live'
end
local seen = 0
local function nextLive(verdicts, owed)
local from, size = 0, 1
while seen < 4096 do
local page = redis.call('ZRANGE', queue, from, from + size - 1)
if #page == 0 then return nil end
for _, member in ipairs(page) do
if string.sub(member, 1, 1) == ':' then return nil end
local waiter = unpackWaiter(member)
local verdict = verdicts[waiter.process]
if not verdict then
local known = redis.call('ZMSCORE', queue, ':p' .. waiter.process, ':s' .. waiter.process)
verdict = judge(waiter.process, known[1], known[2])
verdicts[waiter.process] = verdict
owed[waiter.process] = known[2] == '2' and not lapsed[waiter.process]
end
if verdict == 'live' then return waiter end
if verdict == 'gone' then dequeue(member, waiter.owner) else from = from + 1 end
end
seen = seen + #page
size = 64
end
return nil
end
local function withOwner(first)
local all = {first}
if redis.call('ZSCORE', queue, ':o' .. first.owner) == '1' then return all end
for _, member in ipairs(redis.call('ZRANGE', queue, 0, 4096 - 1)) do
if string.sub(member, 1, 1) == ':' then break end
local waiter = unpackWaiter(member)
if waiter.owner == first.owner and waiter.id ~= first.id then all[#all + 1] = waiter end
end
return all
end
local function tell(name, message)
local heard = isCluster and tonumber(redis.pcall('SPUBLISH', record .. ':' .. name, message))
if not heard or heard == 0 then redis.call('PUBLISH', channels .. name, message) end
end
local function handOn()
local granted, verdicts, owed, paid = {}, {}, {}, {}
local first
repeat
first = nextLive(verdicts, owed)
if not first or not admits(first.owner, first.mode) then break end
if owed[first.process] then paid[first.process] = true end
for _, waiter in ipairs(withOwner(first)) do
if admits(waiter.owner, waiter.mode) then
dequeue(waiter.member, waiter.owner)
raiseFence(waiter.mode)
waiter.ends, waiter.isClaim = nowMs + waiter.claim, true
holds[#holds + 1], granted[#granted + 1] = waiter, waiter
end
end
until first.mode == 'w' or #granted >= 256
sweepQueue()
writeRecord()
if waiting then
for name, verdict in pairs(verdicts) do
if verdict == 'unreachable' then suspend(name) end
end
for name in pairs(paid) do redis.call('ZREM', queue, ':s' .. name) end
end
for _, hold in ipairs(granted) do
if hold.process ~= caller then tell(hold.process, 'granted ' .. hold.id .. ' ' .. digits(last) .. ' ' .. hold.ends) end
end
return first ~= nil
end
local statuses = {r = 'released', e = 'expired', c = 'cancelled', a = 'absent'}
local function recall()
local at = string.find(receipts, '#' .. names .. ' ', 1, true)
if at then
local letter, second, us, ms = string.match(receipts, '^(%a)(%d+)%.(%d+) (%d+)', at + #names + 2)
if untilMs(second, us, ms) > nowMs then return statuses[letter] end
end
if not remembering then return nil end
local letters = {'r', 'e', 'c', 'a'}
local known = redis.call('ZMSCORE', queue, ':gr' .. holdId, ':ge' .. holdId, ':gc' .. holdId, ':ga' .. holdId)
for i, letter in ipairs(letters) do
if known[i] and tonumber(known[i]) > nowUs then return statuses[letter] end
end
return nil
end
local function withClaims(reply)
for _, hold in ipairs(holds) do
if hold.isClaim and hold.names ~= names then
local process, id = string.match(hold.names, '^(%S+) %S+ (%S+)$')
if process == caller then
reply[#reply + 1] = id
reply[#reply + 1] = last
reply[#reply + 1] = hold.ends
end
end
end
return reply
end
local function keepLive()
local known = redis.call('ZMSCORE', queue, ':p' .. caller, ':s' .. caller)
local spanMs = math.ceil(livenessMs * 1.1)
local mark = isCluster and (listenersOf(caller) or 0) > 0 and serverMark() or 0
local isOwed = known[1] and (known[2] or hasLapsed)
lapsed[caller] = nil
local isSaid = known[1] and not isOwed and known[1] % 1 == mark
if isSaid and known[1] - nowMs >= tonumber(livenessMs) then return end
redis.call('ZREM', queue, ':p' .. caller)
redis.call('ZADD', queue, math.max(nowMs + spanMs, math.floor(known[1] or 0)) + mark, ':p' .. caller)
if isOwed then redis.call('ZADD', queue, 2, ':s' .. caller) end
keepQueue(spanMs)
end
local leaseMs = tonumber(string.sub(amount, 3))
local minFence = tonumber(ARGV[3] or 0)
local function grantOf(hold)
return withClaims({'granted', nowMs, last, hold.ends, hold.isClaim and 1 or 0, countOwn() - 1})
end
local function repeatGrant()
for _, hold in ipairs(holds) do
if hold.names == names then
if #holds == 1 and last < minFence then
last = minFence
writeRecord()
end
return grantOf(hold)
end
end
return nil
end
local function enter(place, isBlocked)
if isBlocked and countOwn() == 0 or not admits(owner, mode) then return nil end
if place then dequeue(ownMember, owner) end
raiseFence(mode, minFence)
local hold = {names = names, ends = nowMs + leaseMs, mode = mode}
holds[#holds + 1] = hold
if place then sweepQueue() end
writeRecord()
return grantOf(hold)
end
local function enqueue(place)
local ahead = waiting and redis.call('ZCOUNT', queue, '-inf', '(' .. (place or '0')) or 0
if not place and countOwn() > 0 then return 'conflict', 0, ahead end
if flag == '0' then return 'refused', 0, ahead end
if place then return 'queued', 0, ahead end
if ahead >= tonumber(maxWaiters) then return 'full', 0, ahead end
redis.call('ZINCRBY', queue, 1, ':o' .. owner)
place = digits(nowUs - priority * 1e7 - 1e16)
redis.call('ZADD', queue, place, ownMember)
if ahead > 0 then ahead = redis.call('ZCOUNT', queue, '-inf', '(' .. place) end
keepLive()
if not waiting or alone or hasLapsed then
waiting = true
writeRecord()
end
return 'queued', 1, ahead
end
if recall() then return withClaims({'cancelled', nowMs, 0, 0, 0, 0}) end
local place = redis.call('ZSCORE', queue, ownMember)
local isForgotten = place and not waiting
if place then
waiting = true
keepLive()
end
local isBlocked = waiting and (hasWriter() or handOn())
local grant = repeatGrant() or enter(place, isBlocked)
if grant then return grant end
local status, isNew, ahead = enqueue(place)
if place and (isForgotten or hasLapsed) then writeRecord() end
return withClaims({status, nowMs, freeAt(), isNew, ahead, 0})`,
};

export const edgesOf: RedisScript = {
  name: 'edges-of',
  sha1: 'ae8367de8dce59872991ccf6f3dde0336e7f779e',
  source: `local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
return redis.call('ZRANGE', KEYS[1], '+inf', '(' .. nowMs, 'BYSCORE', 'REV', 'LIMIT', 0, 64)`,
};

export const forceRelease: RedisScript = {
  name: 'force-release',
  sha1: '272406fc414d8715f733858ee5fe07c9e1fd9d99',
  source: `local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])
local record, queue = KEYS[1], KEYS[2]
local names = ARGV[1]
local caller, owner, holdId = string.match(names, '^(%S+) (%S+) (%S+)$')
local amount, flag, wants, maxWaiters, livenessMs, channels = string.match(
ARGV[2], '^(%S+) (%d) (%a %d+ %-?%d+) (%d+) (%d+) (%S+)$'
)
local mode, priority = string.match(wants, '^(%a) %d+ (%-?%d+)$')
local ownMember = names .. ' ' .. wants
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local nowUs = time[1] * 1000000 + time[2]
local function digits(number)
return string.format('%.0f', number)
end
local holds, last, waiting, remembering, receipts = {}, 0, false, false, ''
local alone
local lapsed = {}
if text then
local from = string.find(text, '\\n#', 19, true) or #text + 1
local at = 19
while at < from do
local next = string.find(text, '\\n', at + 1, true) or from
local kind, ends = string.byte(text, at + 1), string.sub(text, at + 2, at + 14)
if kind == 63 then
alone = string.match(text, '^%S+ %S+ %S+', at + 2)
elseif kind ~= 33 then
local isClaim = kind < 97
ends = string.byte(ends) == 43 and ends + string.sub(text, 1, 13) or tonumber(ends)
if ends > nowMs then
local mode = string.char(isClaim and kind + 32 or kind)
holds[#holds + 1] = {names = string.sub(text, at + 16, next - 1), ends = ends, mode = mode, isClaim = isClaim}
elseif isClaim then
lapsed[string.match(text, '^%S+', at + 16)] = true
end
end
at = next
end
last, receipts = tonumber(string.sub(text, 1, 16)), string.sub(text, from)
waiting = string.byte(text, 17) == 113
remembering = string.byte(text, 18) == 103
end
local hasLapsed = lapsed[caller]
local function untilMs(second, us, ms)
return second * 1000 + math.floor(us / 1000) + ms
end
local function suspend(name)
if redis.call('ZSCORE', queue, ':p' .. name) then redis.call('ZADD', queue, 1, ':s' .. name) end
end
local function allowGrowth()
redis.call('PEXPIRE', record, 3600000)
end
local function writeRecord()
local latest = math.max(nowMs, math.ceil(last / 1000))
if remembering then latest = math.max(latest, nowMs + redis.call('PTTL', queue)) end
local isLong = false
for second, us, ms in string.gmatch(receipts .. '\\n', '%a(%d+)%.(%d+) (%d%d%d%d%d%d%d+)\\n') do
local ends = untilMs(second, us, ms)
latest, isLong = math.max(latest, ends), isLong or ends > nowMs + 3600000
end
local flags = (waiting and 'q' or '-') .. (remembering and 'g' or isLong and 'l' or '-')
local parts = {string.format('%016.0f', last) .. flags, ''}
local isShared, earliest = #holds > 1, math.huge
for _, hold in ipairs(holds) do
latest, earliest = math.max(latest, hold.ends), math.min(earliest, hold.ends)
isShared = isShared and hold.mode == 'r' and not hold.isClaim
local kind = hold.isClaim and string.upper(hold.mode) or hold.mode
parts[#parts + 1] = '\\n' .. kind .. hold.ends .. ' '
parts[#parts + 1] = hold.names
end
parts[#parts + 1] = receipts
if isShared then parts[2] = '\\n!' .. earliest end
allowGrowth()
redis.call('SET', record, table.concat(parts), 'PX', latest - nowMs + 3600000)
if not waiting then return end
for name in pairs(lapsed) do suspend(name) end
end
local function unpackWaiter(member)
local names, process, owner, id, mode, claim = string.match(member, '^((%S+) (%S+) (%S+)) (%a) (%d+)')
return {
names = names, id = id, owner = owner, process = process, mode = mode, claim = tonumber(claim), member = member
}
end
local function keepQueue(ms)
if redis.call('PTTL', queue) < ms then redis.call('PEXPIRE', queue, ms) end
end
local function dequeue(member, owner)
if redis.call('ZREM', queue, member) == 0 then return false end
if tonumber(redis.call('ZINCRBY', queue, -1, ':o' .. owner)) <= 0 then redis.call('ZREM', queue, ':o' .. owner) end
return true
end
local function sweepQueue()
local first = redis.call('ZRANGE', queue, 0, 0)[1]
waiting = first ~= nil and string.sub(first, 1, 1) ~= ':'
if waiting then return end
if remembering then
redis.call('ZREMRANGEBYSCORE', queue, 0, '(' .. digits(1e15))
else
redis.call('DEL', queue)
end
end
local function admits(owner, mode)
local middle = ' ' .. owner .. ' '
for _, hold in ipairs(holds) do
if (mode == 'w' or hold.mode == 'w') and not string.find(hold.names, middle, 1, true) then return false end
end
return true
end
local function hasWriter()
for _, hold in ipairs(holds) do
if hold.mode == 'w' then return true end
end
return false
end
local function countOwn()
local count, middle = 0, ' ' .. owner .. ' '
for _, hold in ipairs(holds) do
if string.find(hold.names, middle, 1, true) then count = count + 1 end
end
return count
end
local function freeAt()
local latest = nowMs
for _, hold in ipairs(holds) do latest = math.max(latest, hold.ends) end
return latest
end
local function raiseFence(mode, least)
if #holds > 0 and (mode ~= 'w' or hasWriter()) then return end
last = math.max(last + 1, nowUs, least or 0)
for _, hold in ipairs(holds) do hold.mode = 's' end
end
local isCluster = string.find(channels, '{', 1, true)
local function listenersOf(name)
return redis.pcall('PUBSUB', 'SHARDNUMSUB', record .. ':' .. name)[2]
end
local function serverMark()
local id = redis.pcall('CLUSTER', 'MYID')
return type(id) == 'string' and (tonumber(string.sub(id, 1, 6), 16) % 2047 + 1) / 2048 or 0
end
local function judge(name, untilMs, state)
if not untilMs or tonumber(untilMs) <= nowMs then return 'gone' end
if name == caller then return 'live' end
if state == '1' or lapsed[name] then return 'passed' end
if state == '2' then return 'live' end
if not isCluster then return redis.call('PUBSUB', 'NUMSUB', channels .. name)[2] > 0 and 'live' or 'unreachable' end
local mark = untilMs % 1
return mark > 0 and listenersOf(name) == 0 and mark == serverMark() and 'unreachable' or 'live'
end
local seen = 0
local function nextLive(verdicts, owed)
local from, size = 0, 1
while seen < 4096 do
local page = redis.call('ZRANGE', queue, from, from + size - 1)
if #page == 0 then return nil end
for _, member in ipairs(page) do
if string.sub(member, 1, 1) == ':' then return nil end
local waiter = unpackWaiter(member)
local verdict = verdicts[waiter.process]
if not verdict then
local known = redis.call('ZMSCORE', queue, ':p' .. waiter.process, ':s' .. waiter.process)
verdict = judge(waiter.process, known[1], known[2])
verdicts[waiter.process] = verdict
owed[waiter.process] = known[2] == '2' and not lapsed[waiter.process]
end
if verdict == 'live' then return waiter end
if verdict == 'gone' then dequeue(member, waiter.owner) else from = from + 1 end
end
seen = seen + #page
size = 64
end
return nil
end
local function withOwner(first)
local all = {first}
if redis.call('ZSCORE', queue, ':o' .. first.owner) == '1' then return all end
for _, member in ipairs(redis.call('ZRANGE', queue, 0, 4096 - 1)) do
if string.sub(member, 1, 1) == ':' then break end
local waiter = unpackWaiter(member)
if waiter.owner == first.owner and waiter.id ~= first.id then all[#all + 1] = waiter end
end
return all
end
local function tell(name, message)
local heard = isCluster and tonumber(redis.pcall('SPUBLISH', record .. ':' .. name, message))
if not heard or heard == 0 then redis.call('PUBLISH', channels .. name, message) end
end
local function handOn()
local granted, verdicts, owed, paid = {}, {}, {}, {}
local first
repeat
first = nextLive(verdicts, owed)
if not first or not admits(first.owner, first.mode) then break end
if owed[first.process] then paid[first.process] = true end
for _, waiter in ipairs(withOwner(first)) do
if admits(waiter.owner, waiter.mode) then
dequeue(waiter.member, waiter.owner)
raiseFence(waiter.mode)
waiter.ends, waiter.isClaim = nowMs + waiter.claim, true
holds[#holds + 1], granted[#granted + 1] = waiter, waiter
end
end
until first.mode == 'w' or #granted >= 256
sweepQueue()
writeRecord()
if waiting then
for name, verdict in pairs(verdicts) do
if verdict == 'unreachable' then suspend(name) end
end
for name in pairs(paid) do redis.call('ZREM', queue, ':s' .. name) end
end
for _, hold in ipairs(granted) do
if hold.process ~= caller then tell(hold.process, 'granted ' .. hold.id .. ' ' .. digits(last) .. ' ' .. hold.ends) end
end
return first ~= nil
end
local statuses = {r = 'released', e = 'expired', c = 'cancelled', a = 'absent'}
local function recall()
local at = string.find(receipts, '#' .. names .. ' ', 1, true)
if at then
local letter, second, us, ms = string.match(receipts, '^(%a)(%d+)%.(%d+) (%d+)', at + #names + 2)
if untilMs(second, us, ms) > nowMs then return statuses[letter] end
end
if not remembering then return nil end
local letters = {'r', 'e', 'c', 'a'}
local known = redis.call('ZMSCORE', queue, ':gr' .. holdId, ':ge' .. holdId, ':gc' .. holdId, ':ga' .. holdId)
for i, letter in ipairs(letters) do
if known[i] and tonumber(known[i]) > nowUs then return statuses[letter] end
end
return nil
end
local function withClaims(reply)
for _, hold in ipairs(holds) do
if hold.isClaim and hold.names ~= names then
local process, id = string.match(hold.names, '^(%S+) %S+ (%S+)$')
if process == caller then
reply[#reply + 1] = id
reply[#reply + 1] = last
reply[#reply + 1] = hold.ends
end
end
end
return reply
end
if #holds == 0 or last ~= tonumber(amount) then return 0 end
local taken = holds
holds = {}
handOn()
for _, hold in ipairs(taken) do
local process, id = string.match(hold.names, '^(%S+) %S+ (%S+)$')
tell(process, 'lost ' .. id)
end
return 1`,
};

export const inspect: RedisScript = {
  name: 'inspect',
  sha1: 'b266a8b661eec7b821348c3ec23106c686006043',
  source: `local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local holds, waiters = {}, {}
local function append(list, ...)
for _, part in ipairs({...}) do list[#list + 1] = part end
end
local text = redis.call('GET', KEYS[1]) or ''
local fence = tonumber(string.match(text, '^%d+'))
for kind, sign, ends, process, owner, id in string.gmatch(text, '\\n(%a)(%+?)(%d+) (%S+) (%S+) (%S+)') do
ends = sign == '+' and ends + string.sub(text, 1, 13) or tonumber(ends)
if ends > nowMs then append(holds, id, owner, process, fence, ends, kind) end
end
local members = redis.call('ZRANGE', KEYS[2], 0, 999, 'WITHSCORES')
for i = 1, #members, 2 do
local process, owner, id, mode, priority = string.match(members[i], '^(%S+) (%S+) (%S+) (%a) %d+ (%-?%d+)$')
if not process then break end
append(waiters, id, owner, process, mode, priority, members[i + 1] + 1e16 + priority * 1e7)
end
return {nowMs, holds, waiters}`,
};

export const release: RedisScript = {
  name: 'release',
  sha1: '93ea633856dc35a919b229d3f2ec16696dc2ce02',
  source: `local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])
local afterHold = 35 + #ARGV[1]
local isOnly = text and string.find(text, ARGV[1], 35, true) == 35
local process, owner, id, claimMs, liveMs
if isOnly and #text >= afterHold then
local newline, mark = string.byte(text, afterHold, afterHold + 1)
isOnly = newline == 10 and (mark == 35 or mark == 63)
if isOnly and mark == 63 then
process, owner, id, claimMs, liveMs, afterHold = string.match(
text, '^(%S+) (%S+) (%S+) w (%d+) 0 (%d+)()', afterHold + 2
)
isOnly = afterHold ~= nil
end
end
local ms, mayEnd = string.match(ARGV[2], '^(%d+) (1?)')
if isOnly and #text < afterHold + 1900 and mayEnd == '1' and tonumber(ms) <= 3600000 then
local atMs, endMs = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(string.sub(text, 21, 33))
if string.byte(text, 21) == 43 then endMs = endMs + string.sub(text, 1, 13) end
local releases = ''
if ms == '0' then
releases = string.sub(text, afterHold)
else
local own = '\\n#' .. string.match(ARGV[1], '^%S+ ')
local from = string.find(text, own, afterHold, true)
releases = string.sub(text, afterHold, (from or 0) - 1)
while from do
local to = string.find(text, '\\n', from + 1, true)
from = to and string.find(text, own, to, true)
releases = releases .. (to and string.sub(text, to, (from or 0) - 1) or '')
end
releases = releases .. '\\n#' .. ARGV[1] .. ' r' .. time[1] .. '.' .. time[2] .. ' ' .. ms
end
local waitingFlag, rememberingFlag = string.byte(text, 17, 18)
local isQuick = rememberingFlag == 45 and endMs > atMs
if isQuick and waitingFlag == 45 then
if not redis.pcall('SET', KEYS[1], string.sub(text, 1, 18) .. releases, 'KEEPTTL').err then
if ARGV[3] then redis.call('PUBLISH', string.match(ARGV[2], '(%S+)$') .. 'freed', 'freed ' .. ARGV[3]) end
return atMs
end
elseif isQuick and waitingFlag == 113 then
local isLast, isLive, first = true, liveMs and tonumber(liveMs) > atMs, nil
if not id then
local page = redis.call('ZRANGE', KEYS[2], 0, 1)
first = page[1] or ''
isLast = not page[2] or string.sub(page[2], 1, 1) == ':'
process, owner, id, claimMs = string.match(first, '^(%S+) (%S+) (%S+) w (%d+) ')
local known = id and redis.call('ZMSCORE', KEYS[2], ':p' .. process, ':s' .. process, ':o' .. owner) or {}
liveMs = known[1]
isLive = liveMs and tonumber(liveMs) > atMs and not known[2] and known[3] == '1'
end
if isLive then
local isOwn = string.sub(ARGV[1], 1, #process + 1) == process .. ' '
local channel = not isOwn and string.match(ARGV[2], '(%S+)$') .. process
local inSlot = channel and string.find(channel, '{', 1, true) and KEYS[1] .. ':' .. process
local listeners
if channel and not inSlot then
listeners = redis.call('PUBSUB', 'NUMSUB', channel)[2]
elseif inSlot and liveMs % 1 > 0 then
listeners = redis.pcall('PUBSUB', 'SHARDNUMSUB', inSlot)[2]
end
if listeners ~= 0 then
local ends = atMs + claimMs .. ''
local fence = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))
if text >= fence then fence = string.format('%.0f', string.sub(text, 1, 16) + 1) end
if isLast then redis.call('DEL', KEYS[2]) else redis.call('ZREM', KEYS[2], first, ':o' .. owner) end
local hold = '\\nW' .. ends .. ' ' .. process .. ' ' .. owner .. ' ' .. id
local record = fence .. (isLast and '--' or 'q-') .. hold .. releases
if atMs + claimMs <= endMs then
redis.call('SET', KEYS[1], record, 'KEEPTTL')
else
redis.call('SET', KEYS[1], record, 'PX', math.max(0, math.ceil(fence / 1000) - atMs) + claimMs + 3600000)
end
if isOwn then return {'released', atMs, id, fence, ends} end
local message = 'granted ' .. id .. ' ' .. fence .. ' ' .. ends
local heard = inSlot and tonumber(redis.pcall('SPUBLISH', inSlot, message))
if not heard or heard == 0 then redis.call('PUBLISH', channel, message) end
return atMs
end
end
end
end
local from, to
if text and string.byte(text, 20) == 33 then
local at = string.find(text, ARGV[1], 50, true)
local isWhole = at
and string.byte(text, at - 1) == 32
and (string.byte(text, at + #ARGV[1]) or 10) == 10
if isWhole then from, to = at - 16, at + #ARGV[1] - 1 end
end
afterHold = from and (string.find(text, '\\n#', to, true) or #text + 1)
local forMs, flag = string.match(ARGV[2], '^(%d+) ([01])')
if from and (from > 35 - 1 or to < afterHold - 1) and forMs and tonumber(forMs) <= 3600000 then
local atMs = time[1] * 1000 + math.floor(time[2] / 1000)
local nowUs = time[1] .. string.sub('00000' .. time[2], -6)
local waitingFlag, rememberingFlag = string.byte(text, 17, 18)
local isRemembering = false
if rememberingFlag == 103 then
redis.call('ZREMRANGEBYSCORE', KEYS[2], 1e15, nowUs)
isRemembering = redis.call('ZCOUNT', KEYS[2], nowUs, '+inf') > 0
end
local isKept = (rememberingFlag == 45 or isRemembering)
and tonumber(string.sub(text, 21, 33)) > atMs
local others = string.sub(text, 19, from - 1) .. string.sub(text, to + 1, afterHold - 1)
if isKept and waitingFlag == 113 then
local process, owner = string.match(redis.call('ZRANGE', KEYS[2], 0, 0)[1] or '', '^(%S+) (%S+) %S+ w ')
local known = process and redis.call('ZMSCORE', KEYS[2], ':p' .. process, ':s' .. process) or {}
local isBarred = known[1] and tonumber(known[1]) > atMs and not known[2]
if isBarred and string.sub(ARGV[1], 1, #process + 1) ~= process .. ' ' then
local channel = string.match(ARGV[2], '(%S+)$') .. process
if not string.find(channel, '{', 1, true) then
isBarred = redis.call('PUBSUB', 'NUMSUB', channel)[2] ~= 0
elseif known[1] % 1 > 0 then
isBarred = redis.pcall('PUBSUB', 'SHARDNUMSUB', KEYS[1] .. ':' .. process)[2] ~= 0
end
end
isBarred = isBarred and not string.find(others, ' ' .. owner .. ' ', 1, true)
isKept = isBarred
end
local releases, isFull = string.sub(text, afterHold), false
if forMs ~= '0' then
local caller = string.match(ARGV[1], '^%S+')
if flag == '1' then
releases = string.gsub(releases, '\\n#(%S+)[^\\n]*', function(process) return process == caller and '' or nil end)
end
isFull = #releases > 1500
if not isFull then
releases = releases .. '\\n#' .. ARGV[1] .. ' r' .. time[1] .. '.' .. time[2] .. ' ' .. forMs
end
end
local flags = string.char(waitingFlag) .. ((isFull or isRemembering) and 'g' or '-')
local record = string.sub(text, 1, 16) .. flags .. others .. releases
if isKept and not redis.pcall('SET', KEYS[1], record, 'KEEPTTL').err then
if isFull then
redis.call('ZADD', KEYS[2], nowUs + forMs * 1000, ':gr' .. string.match(ARGV[1], '%S+$'))
if redis.call('PTTL', KEYS[2]) < tonumber(forMs) then redis.call('PEXPIRE', KEYS[2], forMs) end
end
return atMs
end
end
local record, queue = KEYS[1], KEYS[2]
local names = ARGV[1]
local caller, owner, holdId = string.match(names, '^(%S+) (%S+) (%S+)$')
local amount, flag, wants, maxWaiters, livenessMs, channels = string.match(
ARGV[2], '^(%S+) (%d) (%a %d+ %-?%d+) (%d+) (%d+) (%S+)$'
)
local mode, priority = string.match(wants, '^(%a) %d+ (%-?%d+)$')
local ownMember = names .. ' ' .. wants
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local nowUs = time[1] * 1000000 + time[2]
local function digits(number)
return string.format('%.0f', number)
end
local holds, last, waiting, remembering, receipts = {}, 0, false, false, ''
local alone
local lapsed = {}
if text then
local from = string.find(text, '\\n#', 19, true) or #text + 1
local at = 19
while at < from do
local next = string.find(text, '\\n', at + 1, true) or from
local kind, ends = string.byte(text, at + 1), string.sub(text, at + 2, at + 14)
if kind == 63 then
alone = string.match(text, '^%S+ %S+ %S+', at + 2)
elseif kind ~= 33 then
local isClaim = kind < 97
ends = string.byte(ends) == 43 and ends + string.sub(text, 1, 13) or tonumber(ends)
if ends > nowMs then
local mode = string.char(isClaim and kind + 32 or kind)
holds[#holds + 1] = {names = string.sub(text, at + 16, next - 1), ends = ends, mode = mode, isClaim = isClaim}
elseif isClaim then
lapsed[string.match(text, '^%S+', at + 16)] = true
end
end
at = next
end
last, receipts = tonumber(string.sub(text, 1, 16)), string.sub(text, from)
waiting = string.byte(text, 17) == 113
remembering = string.byte(text, 18) == 103
end
local hasLapsed = lapsed[caller]
local function untilMs(second, us, ms)
return second * 1000 + math.floor(us / 1000) + ms
end
local function suspend(name)
if redis.call('ZSCORE', queue, ':p' .. name) then redis.call('ZADD', queue, 1, ':s' .. name) end
end
local function allowGrowth()
redis.call('PEXPIRE', record, 3600000)
end
local function writeRecord()
local latest = math.max(nowMs, math.ceil(last / 1000))
if remembering then latest = math.max(latest, nowMs + redis.call('PTTL', queue)) end
local isLong = false
for second, us, ms in string.gmatch(receipts .. '\\n', '%a(%d+)%.(%d+) (%d%d%d%d%d%d%d+)\\n') do
local ends = untilMs(second, us, ms)
latest, isLong = math.max(latest, ends), isLong or ends > nowMs + 3600000
end
local flags = (waiting and 'q' or '-') .. (remembering and 'g' or isLong and 'l' or '-')
local parts = {string.format('%016.0f', last) .. flags, ''}
local isShared, earliest = #holds > 1, math.huge
for _, hold in ipairs(holds) do
latest, earliest = math.max(latest, hold.ends), math.min(earliest, hold.ends)
isShared = isShared and hold.mode == 'r' and not hold.isClaim
local kind = hold.isClaim and string.upper(hold.mode) or hold.mode
parts[#parts + 1] = '\\n' .. kind .. hold.ends .. ' '
parts[#parts + 1] = hold.names
end
parts[#parts + 1] = receipts
if isShared then parts[2] = '\\n!' .. earliest end
allowGrowth()
redis.call('SET', record, table.concat(parts), 'PX', latest - nowMs + 3600000)
if not waiting then return end
for name in pairs(lapsed) do suspend(name) end
end
local function unpackWaiter(member)
local names, process, owner, id, mode, claim = string.match(member, '^((%S+) (%S+) (%S+)) (%a) (%d+)')
return {
names = names, id = id, owner = owner, process = process, mode = mode, claim = tonumber(claim), member = member
}
end
local function keepQueue(ms)
if redis.call('PTTL', queue) < ms then redis.call('PEXPIRE', queue, ms) end
end
local function dequeue(member, owner)
if redis.call('ZREM', queue, member) == 0 then return false end
if tonumber(redis.call('ZINCRBY', queue, -1, ':o' .. owner)) <= 0 then redis.call('ZREM', queue, ':o' .. owner) end
return true
end
local function sweepQueue()
local first = redis.call('ZRANGE', queue, 0, 0)[1]
waiting = first ~= nil and string.sub(first, 1, 1) ~= ':'
if waiting then return end
if remembering then
redis.call('ZREMRANGEBYSCORE', queue, 0, '(' .. digits(1e15))
else
redis.call('DEL', queue)
end
end
local function admits(owner, mode)
local middle = ' ' .. owner .. ' '
for _, hold in ipairs(holds) do
if (mode == 'w' or hold.mode == 'w') and not string.find(hold.names, middle, 1, true) then return false end
end
return true
end
local function hasWriter()
for _, hold in ipairs(holds) do
if hold.mode == 'w' then return true end
end
return false
end
local function countOwn()
local count, middle = 0, ' ' .. owner .. ' '
for _, hold in ipairs(holds) do
if string.find(hold.names, middle, 1, true) then count = count + 1 end
end
return count
end
local function freeAt()
local latest = nowMs
for _, hold in ipairs(holds) do latest = math.max(latest, hold.ends) end
return latest
end
local function raiseFence(mode, least)
if #holds > 0 and (mode ~= 'w' or hasWriter()) then return end
last = math.max(last + 1, nowUs, least or 0)
for _, hold in ipairs(holds) do hold.mode = 's' end
end
local isCluster = string.find(channels, '{', 1, true)
local function listenersOf(name)
return redis.pcall('PUBSUB', 'SHARDNUMSUB', record .. ':' .. name)[2]
end
local function serverMark()
local id = redis.pcall('CLUSTER', 'MYID')
return type(id) == 'string' and (tonumber(string.sub(id, 1, 6), 16) % 2047 + 1) / 2048 or 0
end
local function judge(name, untilMs, state)
if not untilMs or tonumber(untilMs) <= nowMs then return 'gone' end
if name == caller then return 'live' end
if state == '1' or lapsed[name] then return 'passed' end
if state == '2' then return 'live' end
if not isCluster then return redis.call('PUBSUB', 'NUMSUB', channels .. name)[2] > 0 and 'live' or 'unreachable' end
local mark = untilMs % 1
return mark > 0 and listenersOf(name) == 0 and mark == serverMark() and 'unreachable' or 'live'
end
local seen = 0
local function nextLive(verdicts, owed)
local from, size = 0, 1
while seen < 4096 do
local page = redis.call('ZRANGE', queue, from, from + size - 1)
if #page == 0 then return nil end
for _, member in ipairs(page) do
if string.sub(member, 1, 1) == ':' then return nil end
local waiter = unpackWaiter(member)
local verdict = verdicts[waiter.process]
if not verdict then
local known = redis.call('ZMSCORE', queue, ':p' .. waiter.process, ':s' .. waiter.process)
verdict = judge(waiter.process, known[1], known[2])
verdicts[waiter.process] = verdict
owed[waiter.process] = known[2] == '2' and not lapsed[waiter.process]
end
if verdict == 'live' then return waiter end
if verdict == 'gone' then dequeue(member, waiter.owner) else from = from + 1 end
end
seen = seen + #page
size = 64
end
return nil
end
local function withOwner(first)
local all = {first}
if redis.call('ZSCORE', queue, ':o' .. first.owner) == '1' then return all end
for _, member in ipairs(redis.call('ZRANGE', queue, 0, 4096 - 1)) do
if string.sub(member, 1, 1) == ':' then break end
local waiter = unpackWaiter(member)
if waiter.owner == first.owner and waiter.id ~= first.id then all[#all + 1] = waiter end
end
return all
end
local function tell(name, message)
local heard = isCluster and tonumber(redis.pcall('SPUBLISH', record .. ':' .. name, message))
if not heard or heard == 0 then redis.call('PUBLISH', channels .. name, message) end
end
local function handOn()
local granted, verdicts, owed, paid = {}, {}, {}, {}
local first
repeat
first = nextLive(verdicts, owed)
if not first or not admits(first.owner, first.mode) then break end
if owed[first.process] then paid[first.process] = true end
for _, waiter in ipairs(withOwner(first)) do
if admits(waiter.owner, waiter.mode) then
dequeue(waiter.member, waiter.owner)
raiseFence(waiter.mode)
waiter.ends, waiter.isClaim = nowMs + waiter.claim, true
holds[#holds + 1], granted[#granted + 1] = waiter, waiter
end
end
until first.mode == 'w' or #granted >= 256
sweepQueue()
writeRecord()
if waiting then
for name, verdict in pairs(verdicts) do
if verdict == 'unreachable' then suspend(name) end
end
for name in pairs(paid) do redis.call('ZREM', queue, ':s' .. name) end
end
for _, hold in ipairs(granted) do
if hold.process ~= caller then tell(hold.process, 'granted ' .. hold.id .. ' ' .. digits(last) .. ' ' .. hold.ends) end
end
return first ~= nil
end
local statuses = {r = 'released', e = 'expired', c = 'cancelled', a = 'absent'}
local function recall()
local at = string.find(receipts, '#' .. names .. ' ', 1, true)
if at then
local letter, second, us, ms = string.match(receipts, '^(%a)(%d+)%.(%d+) (%d+)', at + #names + 2)
if untilMs(second, us, ms) > nowMs then return statuses[letter] end
end
if not remembering then return nil end
local letters = {'r', 'e', 'c', 'a'}
local known = redis.call('ZMSCORE', queue, ':gr' .. holdId, ':ge' .. holdId, ':gc' .. holdId, ':ga' .. holdId)
for i, letter in ipairs(letters) do
if known[i] and tonumber(known[i]) > nowUs then return statuses[letter] end
end
return nil
end
local function withClaims(reply)
for _, hold in ipairs(holds) do
if hold.isClaim and hold.names ~= names then
local process, id = string.match(hold.names, '^(%S+) %S+ (%S+)$')
if process == caller then
reply[#reply + 1] = id
reply[#reply + 1] = last
reply[#reply + 1] = hold.ends
end
end
end
return reply
end
local function remove()
for i, hold in ipairs(holds) do
if hold.names == names then
table.remove(holds, i)
return 'released'
end
end
return nil
end
local function cancel()
if dequeue(ownMember, owner) then
sweepQueue()
return 'cancelled'
end
local wasHeld = text and string.find(text .. '\\n', ' ' .. names .. '\\n', 19, true)
return wasHeld and 'expired' or 'absent'
end
local function forgetOwnReleases()
receipts = string.gsub(receipts, '\\n#(%S+)[^\\n]*', function(process) return process == caller and '' or nil end)
end
local function forgetOldReleases()
receipts = string.gsub(receipts, '\\n#[^\\n]* %a(%d+)%.(%d+) (%d+)', function(...)
return untilMs(...) <= nowMs and '' or nil
end)
end
local function remember(status)
local rememberMs = tonumber(amount)
if status == 'absent' and flag ~= '2' then rememberMs = 0 end
if remembering then
remembering = redis.call('ZCOUNT', queue, '(' .. digits(nowUs), '+inf') > 0
redis.call('ZREMRANGEBYSCORE', queue, digits(1e15), digits(nowUs))
end
if rememberMs == 0 then return false end
if flag == '1' and status ~= 'absent' then forgetOwnReleases() end
if #receipts > 1500 then forgetOldReleases() end
local letter = string.sub(status, 1, 1)
if flag ~= '2' and #receipts <= 1500 then
receipts = receipts .. '\\n#' .. names .. ' ' .. letter .. time[1] .. '.' .. time[2] .. ' ' .. amount
else
allowGrowth()
redis.call('ZADD', queue, digits(nowUs + rememberMs * 1000), ':g' .. letter .. holdId)
keepQueue(rememberMs)
remembering = true
end
return true
end
local status = remove()
local before = not status and recall()
if before then return withClaims({before, nowMs}) end
status = status or cancel()
local isRemembered = remember(status)
if waiting and not hasWriter() then
handOn()
elseif status ~= 'absent' or isRemembered or alone == names then
writeRecord()
end
if ARGV[3] and #holds == 0 and status ~= 'absent' then
redis.call('PUBLISH', channels .. 'freed', 'freed ' .. ARGV[3])
end
return withClaims({status, nowMs})`,
};

export const renew: RedisScript = {
  name: 'renew',
  sha1: '79a2c5be26147b2d3d02045b144075e2bd3fd4d6',
  source: `local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])
local from, to
if text and string.byte(text, 20) == 33 then
local at = string.find(text, ARGV[1], 50, true)
local isWhole = at
and string.byte(text, at - 1) == 32
and (string.byte(text, at + #ARGV[1]) or 10) == 10
if isWhole then from, to = at - 16, at + #ARGV[1] - 1 end
end
if from and tonumber(string.sub(text, 1, 16)) == tonumber(ARGV[3]) then
local atMs, leaseMs = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(string.match(ARGV[2], '^%d+'))
if tonumber(string.sub(text, 21, 33)) > atMs then
local ends = math.max(tonumber(string.sub(text, from + 2, from + 14)), atMs + leaseMs)
if tonumber(redis.pcall('SETRANGE', KEYS[1], from + 1, ends)) then
if redis.call('PTTL', KEYS[1]) < leaseMs + 3600000 then redis.call('PEXPIRE', KEYS[1], leaseMs + 3600000) end
return {'renewed', atMs, ends}
end
end
end
local record, queue = KEYS[1], KEYS[2]
local names = ARGV[1]
local caller, owner, holdId = string.match(names, '^(%S+) (%S+) (%S+)$')
local amount, flag, wants, maxWaiters, livenessMs, channels = string.match(
ARGV[2], '^(%S+) (%d) (%a %d+ %-?%d+) (%d+) (%d+) (%S+)$'
)
local mode, priority = string.match(wants, '^(%a) %d+ (%-?%d+)$')
local ownMember = names .. ' ' .. wants
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local nowUs = time[1] * 1000000 + time[2]
local function digits(number)
return string.format('%.0f', number)
end
local holds, last, waiting, remembering, receipts = {}, 0, false, false, ''
local alone
local lapsed = {}
if text then
local from = string.find(text, '\\n#', 19, true) or #text + 1
local at = 19
while at < from do
local next = string.find(text, '\\n', at + 1, true) or from
local kind, ends = string.byte(text, at + 1), string.sub(text, at + 2, at + 14)
if kind == 63 then
alone = string.match(text, '^%S+ %S+ %S+', at + 2)
elseif kind ~= 33 then
local isClaim = kind < 97
ends = string.byte(ends) == 43 and ends + string.sub(text, 1, 13) or tonumber(ends)
if ends > nowMs then
local mode = string.char(isClaim and kind + 32 or kind)
holds[#holds + 1] = {names = string.sub(text, at + 16, next - 1), ends = ends, mode = mode, isClaim = isClaim}
elseif isClaim then
lapsed[string.match(text, '^%S+', at + 16)] = true
end
end
at = next
end
last, receipts = tonumber(string.sub(text, 1, 16)), string.sub(text, from)
waiting = string.byte(text, 17) == 113
remembering = string.byte(text, 18) == 103
end
local hasLapsed = lapsed[caller]
local function untilMs(second, us, ms)
return second * 1000 + math.floor(us / 1000) + ms
end
local function suspend(name)
if redis.call('ZSCORE', queue, ':p' .. name) then redis.call('ZADD', queue, 1, ':s' .. name) end
end
local function allowGrowth()
redis.call('PEXPIRE', record, 3600000)
end
local function writeRecord()
local latest = math.max(nowMs, math.ceil(last / 1000))
if remembering then latest = math.max(latest, nowMs + redis.call('PTTL', queue)) end
local isLong = false
for second, us, ms in string.gmatch(receipts .. '\\n', '%a(%d+)%.(%d+) (%d%d%d%d%d%d%d+)\\n') do
local ends = untilMs(second, us, ms)
latest, isLong = math.max(latest, ends), isLong or ends > nowMs + 3600000
end
local flags = (waiting and 'q' or '-') .. (remembering and 'g' or isLong and 'l' or '-')
local parts = {string.format('%016.0f', last) .. flags, ''}
local isShared, earliest = #holds > 1, math.huge
for _, hold in ipairs(holds) do
latest, earliest = math.max(latest, hold.ends), math.min(earliest, hold.ends)
isShared = isShared and hold.mode == 'r' and not hold.isClaim
local kind = hold.isClaim and string.upper(hold.mode) or hold.mode
parts[#parts + 1] = '\\n' .. kind .. hold.ends .. ' '
parts[#parts + 1] = hold.names
end
parts[#parts + 1] = receipts
if isShared then parts[2] = '\\n!' .. earliest end
allowGrowth()
redis.call('SET', record, table.concat(parts), 'PX', latest - nowMs + 3600000)
if not waiting then return end
for name in pairs(lapsed) do suspend(name) end
end
local function unpackWaiter(member)
local names, process, owner, id, mode, claim = string.match(member, '^((%S+) (%S+) (%S+)) (%a) (%d+)')
return {
names = names, id = id, owner = owner, process = process, mode = mode, claim = tonumber(claim), member = member
}
end
local function keepQueue(ms)
if redis.call('PTTL', queue) < ms then redis.call('PEXPIRE', queue, ms) end
end
local function dequeue(member, owner)
if redis.call('ZREM', queue, member) == 0 then return false end
if tonumber(redis.call('ZINCRBY', queue, -1, ':o' .. owner)) <= 0 then redis.call('ZREM', queue, ':o' .. owner) end
return true
end
local function sweepQueue()
local first = redis.call('ZRANGE', queue, 0, 0)[1]
waiting = first ~= nil and string.sub(first, 1, 1) ~= ':'
if waiting then return end
if remembering then
redis.call('ZREMRANGEBYSCORE', queue, 0, '(' .. digits(1e15))
else
redis.call('DEL', queue)
end
end
local function admits(owner, mode)
local middle = ' ' .. owner .. ' '
for _, hold in ipairs(holds) do
if (mode == 'w' or hold.mode == 'w') and not string.find(hold.names, middle, 1, true) then return false end
end
return true
end
local function hasWriter()
for _, hold in ipairs(holds) do
if hold.mode == 'w' then return true end
end
return false
end
local function countOwn()
local count, middle = 0, ' ' .. owner .. ' '
for _, hold in ipairs(holds) do
if string.find(hold.names, middle, 1, true) then count = count + 1 end
end
return count
end
local function freeAt()
local latest = nowMs
for _, hold in ipairs(holds) do latest = math.max(latest, hold.ends) end
return latest
end
local function raiseFence(mode, least)
if #holds > 0 and (mode ~= 'w' or hasWriter()) then return end
last = math.max(last + 1, nowUs, least or 0)
for _, hold in ipairs(holds) do hold.mode = 's' end
end
local isCluster = string.find(channels, '{', 1, true)
local function listenersOf(name)
return redis.pcall('PUBSUB', 'SHARDNUMSUB', record .. ':' .. name)[2]
end
local function serverMark()
local id = redis.pcall('CLUSTER', 'MYID')
return type(id) == 'string' and (tonumber(string.sub(id, 1, 6), 16) % 2047 + 1) / 2048 or 0
end
local function judge(name, untilMs, state)
if not untilMs or tonumber(untilMs) <= nowMs then return 'gone' end
if name == caller then return 'live' end
if state == '1' or lapsed[name] then return 'passed' end
if state == '2' then return 'live' end
if not isCluster then return redis.call('PUBSUB', 'NUMSUB', channels .. name)[2] > 0 and 'live' or 'unreachable' end
local mark = untilMs % 1
return mark > 0 and listenersOf(name) == 0 and mark == serverMark() and 'unreachable' or 'live'
end
local seen = 0
local function nextLive(verdicts, owed)
local from, size = 0, 1
while seen < 4096 do
local page = redis.call('ZRANGE', queue, from, from + size - 1)
if #page == 0 then return nil end
for _, member in ipairs(page) do
if string.sub(member, 1, 1) == ':' then return nil end
local waiter = unpackWaiter(member)
local verdict = verdicts[waiter.process]
if not verdict then
local known = redis.call('ZMSCORE', queue, ':p' .. waiter.process, ':s' .. waiter.process)
verdict = judge(waiter.process, known[1], known[2])
verdicts[waiter.process] = verdict
owed[waiter.process] = known[2] == '2' and not lapsed[waiter.process]
end
if verdict == 'live' then return waiter end
if verdict == 'gone' then dequeue(member, waiter.owner) else from = from + 1 end
end
seen = seen + #page
size = 64
end
return nil
end
local function withOwner(first)
local all = {first}
if redis.call('ZSCORE', queue, ':o' .. first.owner) == '1' then return all end
for _, member in ipairs(redis.call('ZRANGE', queue, 0, 4096 - 1)) do
if string.sub(member, 1, 1) == ':' then break end
local waiter = unpackWaiter(member)
if waiter.owner == first.owner and waiter.id ~= first.id then all[#all + 1] = waiter end
end
return all
end
local function tell(name, message)
local heard = isCluster and tonumber(redis.pcall('SPUBLISH', record .. ':' .. name, message))
if not heard or heard == 0 then redis.call('PUBLISH', channels .. name, message) end
end
local function handOn()
local granted, verdicts, owed, paid = {}, {}, {}, {}
local first
repeat
first = nextLive(verdicts, owed)
if not first or not admits(first.owner, first.mode) then break end
if owed[first.process] then paid[first.process] = true end
for _, waiter in ipairs(withOwner(first)) do
if admits(waiter.owner, waiter.mode) then
dequeue(waiter.member, waiter.owner)
raiseFence(waiter.mode)
waiter.ends, waiter.isClaim = nowMs + waiter.claim, true
holds[#holds + 1], granted[#granted + 1] = waiter, waiter
end
end
until first.mode == 'w' or #granted >= 256
sweepQueue()
writeRecord()
if waiting then
for name, verdict in pairs(verdicts) do
if verdict == 'unreachable' then suspend(name) end
end
for name in pairs(paid) do redis.call('ZREM', queue, ':s' .. name) end
end
for _, hold in ipairs(granted) do
if hold.process ~= caller then tell(hold.process, 'granted ' .. hold.id .. ' ' .. digits(last) .. ' ' .. hold.ends) end
end
return first ~= nil
end
local statuses = {r = 'released', e = 'expired', c = 'cancelled', a = 'absent'}
local function recall()
local at = string.find(receipts, '#' .. names .. ' ', 1, true)
if at then
local letter, second, us, ms = string.match(receipts, '^(%a)(%d+)%.(%d+) (%d+)', at + #names + 2)
if untilMs(second, us, ms) > nowMs then return statuses[letter] end
end
if not remembering then return nil end
local letters = {'r', 'e', 'c', 'a'}
local known = redis.call('ZMSCORE', queue, ':gr' .. holdId, ':ge' .. holdId, ':gc' .. holdId, ':ga' .. holdId)
for i, letter in ipairs(letters) do
if known[i] and tonumber(known[i]) > nowUs then return statuses[letter] end
end
return nil
end
local function withClaims(reply)
for _, hold in ipairs(holds) do
if hold.isClaim and hold.names ~= names then
local process, id = string.match(hold.names, '^(%S+) %S+ (%S+)$')
if process == caller then
reply[#reply + 1] = id
reply[#reply + 1] = last
reply[#reply + 1] = hold.ends
end
end
end
return reply
end
local function extend()
local fence = tonumber(ARGV[3])
for _, hold in ipairs(holds) do
if hold.names == names and (fence == last or hold.mode == 's' and fence < last) then
hold.ends = math.max(hold.ends, nowMs + tonumber(amount))
hold.isClaim = false
writeRecord()
return hold.ends
end
end
end
local ends = extend()
if ends then return {'renewed', nowMs, ends} end
return {'lost', nowMs}`,
};

export const setEdge: RedisScript = {
  name: 'set-edge',
  sha1: 'ee1cead31e4cbc23698acbe1b103686c4c37fdd3',
  source: `local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local ttlMs = tonumber(ARGV[2])
if ttlMs == 0 then
redis.call('ZREM', KEYS[1], ARGV[1])
return 1
end
local leftMs = redis.call('PTTL', KEYS[1])
redis.call('PEXPIRE', KEYS[1], math.max(leftMs, ttlMs))
redis.call('ZADD', KEYS[1], nowMs + ttlMs, ARGV[1])
if leftMs < 0 then redis.call('PEXPIRE', KEYS[1], ttlMs) end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', nowMs)
return 1`,
};

export const wait: RedisScript = {
  name: 'wait',
  sha1: 'fbaa326e135acd05e91805801648ed6d386c4f8a',
  source: `local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local text = redis.call('GET', KEYS[1]) or ''
local place = redis.call('ZSCORE', KEYS[2], ARGV[1])
local priority = string.match(ARGV[1], '(%-?%d+)$')
local reply = {place and place + 1e16 + priority * 1e7}
local fence = tonumber(string.match(text, '^%d+'))
for sign, ends, owner, id in string.gmatch(text, '\\n%a(%+?)(%d+) %S+ (%S+) (%S+)') do
ends = sign == '+' and ends + string.sub(text, 1, 13) or tonumber(ends)
if ends > nowMs then
reply[#reply + 1] = id
reply[#reply + 1] = owner
reply[#reply + 1] = fence
end
end
return reply`,
};
