// Generated from lua/*.lua by `node scripts/build-lua.mjs`. Do not edit.
import type { RedisScript } from './scripts.ts';

export const settings = {
  RECORD_TTL_MS: 3600000,
  SHORT_RECORD_TTL_MS: 3700000,
} as const;

export const acquire: RedisScript = {
  name: 'acquire',
  sha1: 'f1541b0131c534579a787e5c933dc7df569a76c3',
  source: `local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])
local permits
if text and string.byte(text) > 57 then
permits = tonumber(string.match(text, '^p(%d%d%d%d)%d'))
if not permits then return redis.error_reply('RLFORMAT the record is of another format') end
text = string.sub(text, 6)
end
if string.byte(ARGV[2], 15) ~= 43 then
local fence = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))
local waitingFlag, rememberingFlag, lineFeed, kind
if text then waitingFlag, rememberingFlag, lineFeed, kind = string.byte(text, 17, 20) end
local isFree = not text
or waitingFlag == 45 and rememberingFlag == 45 and (not lineFeed or kind == 35) and text < fence
if isFree and not (lineFeed and string.find(text, ARGV[1], 19, true)) and not (ARGV[3] and ARGV[3] > fence) then
local releases = lineFeed and string.sub(text, 19) or ''
local hold = fence .. '--\\n' .. string.sub(ARGV[2], 1, 15) .. ARGV[1] .. releases
local isShort = string.find(ARGV[2], '+0000000', 2, true) == 2
redis.call('SET', KEYS[1], hold, 'PX', isShort and '3700000' or string.sub(ARGV[2], 3, 14) + 3600000)
return fence
end
local isWritten = kind == 119 or kind == 87
local isRemembering = rememberingFlag == 103
local mayJoin = waitingFlag == 113 and (isRemembering or rememberingFlag == 45)
if isWritten and (mayJoin or waitingFlag == 45 and rememberingFlag == 45) then
local atMs, endMs = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(string.sub(text, 21, 33))
if string.byte(text, 21) == 43 then endMs = endMs + string.sub(text, 1, 13) end
local process, owner, id = string.match(text, '^(%S+) (%S+) (%S+)', 35)
local ownProcess, ownOwner = string.match(ARGV[1], '^(%S+) (%S+)')
local flag, wants, maxWaiters, livenessMs = string.match(ARGV[2], '^(%d) (%a %d+ 0) (%d+) (%d+)', 16)
local line = string.find(text, '\\n', 35, true)
local isOnly = not line or string.byte(text, line + 1) == 35
local isNew = isOnly and not string.find(text, ARGV[1], 19, true)
if isNew and isRemembering then
local ownId = string.match(ARGV[1], '%S+$')
local known = redis.call('ZMSCORE', KEYS[2], ':gr' .. ownId, ':ge' .. ownId, ':gc' .. ownId, ':ga' .. ownId)
isNew = not (known[1] or known[2] or known[3] or known[4])
end
if isNew and flag == '1' and owner ~= ownOwner and endMs > atMs then
local place = string.format('%.0f', time[1] * 1000000 + time[2] - 1e16)
local member, ownMark, ahead = ARGV[1] .. ' ' .. wants, ':o' .. ownOwner, nil
if waitingFlag == 113 then
local known = redis.call('ZMSCORE', KEYS[2], ':p' .. ownProcess, ':s' .. ownProcess)
local isLive = known[1] and not known[2] and known[1] - atMs >= tonumber(livenessMs)
local most = tonumber(maxWaiters)
if isLive and (redis.call('ZCARD', KEYS[2]) < most or redis.call('ZCOUNT', KEYS[2], '-inf', '(0') < most) then
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
if lineFeed and string.byte(ARGV[2]) ~= 119 then
local atMs = time[1] * 1000 + math.floor(time[2] / 1000)
local isRemembering = rememberingFlag == 103
local isShared = not permits and waitingFlag == 45 and (isRemembering or rememberingFlag == 45)
local line, readers = 19, 0
if isShared and kind == 33 then
line = line + 2
kind = string.byte(text, line + 1)
readers = redis.call('ZCOUNT', KEYS[2], 1e13, '(' .. 1e15)
isShared = readers > 0 and redis.call('ZCOUNT', KEYS[2], 1e13 + atMs + 1, '(' .. 2e13) == readers
end
local rest, isInRecord = line, kind == 114 or kind == 115
if isShared and isInRecord then
local endMs = tonumber(string.sub(text, line + 2, line + 14))
if string.byte(text, line + 2) == 43 then endMs = endMs + string.sub(text, 1, 13) end
isShared = endMs > atMs
rest = string.find(text, '\\n', line + 16, true) or #text + 1
end
local mark = string.byte(text, rest + 1)
isShared = isShared and (isInRecord or readers > 0) and (not mark or mark == 35)
local owner, id = string.match(ARGV[1], '^%S+ (%S+) (%S+)')
local at = isShared and string.find(text, ' ' .. owner .. ' ', line, true)
if isShared and not (at and at < rest) and not string.find(text, ARGV[1], 19, true) then
local leaseMs, hold, count = tonumber(string.sub(ARGV[2], 3, 14)), ':h' .. ARGV[1], ':r' .. owner
local waiter = ARGV[1] .. ' ' .. string.match(ARGV[2], '^%S+ %d (%a %d+ %-?%d+)')
local known = redis.call('ZMSCORE', KEYS[2], count, waiter, ':gr' .. id, ':ge' .. id, ':gc' .. id, ':ga' .. id)
local isNew = not (known[1] or known[2] or known[3] or known[4] or known[5] or known[6])
if isNew and redis.pcall('ZADD', KEYS[2], 1e13 + atMs + leaseMs, hold, 1, count) == 2 then
if redis.call('PTTL', KEYS[2]) < leaseMs then redis.call('PEXPIRE', KEYS[2], leaseMs) end
local last = tonumber(string.sub(text, 1, 16))
local keepMs = math.max(leaseMs, math.ceil(last / 1000) - atMs) + 3600000
keepMs = math.max(keepMs, redis.call('PTTL', KEYS[1]))
if readers > 0 then
redis.call('PEXPIRE', KEYS[1], keepMs)
else
local head = string.sub(text, 1, 18)
redis.call('SET', KEYS[1], head .. '\\n!' .. string.sub(text, 19), 'PX', keepMs)
end
return {'granted', atMs, last, atMs + leaseMs, 0, 0}
end
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
local function unpackWaiter(member)
local names, process, owner, id, mode, claim = string.match(member, '^((%S+) (%S+) (%S+)) (%a) (%d+)')
return {
names = names, id = id, owner = owner, process = process, mode = mode, claim = tonumber(claim), member = member
}
end
local function keepQueue(ms)
if redis.call('PTTL', queue) < ms then redis.call('PEXPIRE', queue, ms) end
end
local function removeCounted(member, count)
local known = redis.call('ZMSCORE', queue, member, count)
if not known[1] then return false end
if known[2] == '1' then
redis.call('ZREM', queue, member, count)
else
redis.call('ZREM', queue, member)
redis.call('ZINCRBY', queue, -1, count)
end
return true
end
local function dequeue(member, owner)
return removeCounted(member, ':o' .. owner)
end
local function suspend(name)
if redis.call('ZSCORE', queue, ':p' .. name) then redis.call('ZADD', queue, 1e9, ':s' .. name) end
end
local function readScore(score)
local isClaim = tonumber(score) >= 2e13
return math.floor(score) - (isClaim and 2e13 or 1e13), isClaim, score % 1 > 0
end
local function scoreOf(ends, isClaim, isRaised)
return (isClaim and 2e13 or 1e13) + ends + (isRaised and 0.5 or 0)
end
local readers = 0
local ended = {}
local function countReaders(from, to)
return redis.call('ZCOUNT', queue, from, to or '(' .. 1e15)
end
local function readersIn(from, to, limit)
local list = {}
if countReaders(from, to) == 0 then return list end
to = to or '(' .. 1e15
local found = redis.call('ZRANGE', queue, from, to, 'BYSCORE', 'LIMIT', 0, limit or -1, 'WITHSCORES')
for i = 1, #found, 2 do
local ends, isClaim, isRaised = readScore(found[i + 1])
list[#list + 1] = {names = string.sub(found[i], 3), ends = ends, isClaim = isClaim, mode = isRaised and 's' or 'r'}
end
return list
end
local function writeReader(hold)
redis.call('ZADD', queue, scoreOf(hold.ends, hold.isClaim, hold.mode == 's'), ':h' .. hold.names)
keepQueue(hold.ends - nowMs)
end
local function addReader(hold, owner)
writeReader(hold)
redis.call('ZINCRBY', queue, 1, ':r' .. owner)
readers = readers == 0 and countReaders(1e13) or readers + 1
end
local function findReader(names)
local score = readers > 0 and redis.call('ZSCORE', queue, ':h' .. names)
if not score then return nil end
local ends, isClaim = readScore(score)
return {names = names, ends = ends, isClaim = isClaim}
end
local function removeReader(names, owner)
if readers == 0 or not removeCounted(':h' .. names, ':r' .. owner) then return false end
readers = readers - 1
return true
end
local function readersOf(owner)
return readers > 0 and tonumber(redis.call('ZSCORE', queue, ':r' .. owner) or 0) or 0
end
local function lastReaderEnd()
local latest = nowMs
for _, top in ipairs({1e15, 2e13}) do
local last = redis.call('ZRANGE', queue, '(' .. top, 1e13, 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')
if last[1] then latest = math.max(latest, (readScore(last[2]))) end
end
return latest
end
local function removeEnded(from)
for _, hold in ipairs(readersIn(from, scoreOf(nowMs, from == 2e13, true))) do
local process, owner = string.match(hold.names, '^(%S+) (%S+)')
removeCounted(':h' .. hold.names, ':r' .. owner)
if hold.isClaim then suspend(process) end
ended[hold.names] = true
end
end
local function findReaders()
removeEnded(1e13)
removeEnded(2e13)
readers = countReaders(1e13)
end
if text and string.byte(text, 20) == 33 then findReaders() end
local function hasHolds()
return #holds + readers > 0
end
local function hasWriter()
for _, hold in ipairs(holds) do
if hold.mode == 'w' then return true end
end
return false
end
local function countOf(owner)
local count, middle = readersOf(owner), ' ' .. owner .. ' '
for _, hold in ipairs(holds) do
if string.find(hold.names, middle, 1, true) then count = count + 1 end
end
return count
end
local function countOwners()
local count = #holds + readers
for _, hold in ipairs(holds) do
if readersOf(string.match(hold.names, '^%S+ (%S+)')) > 0 then count = count - 1 end
end
local several = redis.call('ZRANGE', queue, 2, '(' .. 1e9, 'BYSCORE', 'WITHSCORES')
for i = 1, #several, 2 do
if string.sub(several[i], 1, 2) == ':r' then count = count - several[i + 1] + 1 end
end
return count
end
local function admits(owner, mode)
if permits then return #holds + readers < permits or countOf(owner) > 0 or countOwners() < permits end
local middle = ' ' .. owner .. ' '
for _, hold in ipairs(holds) do
if (mode == 'w' or hold.mode == 'w') and not string.find(hold.names, middle, 1, true) then return false end
end
return mode ~= 'w' or readersOf(owner) == readers
end
local function freeAt()
local latest = readers > 0 and lastReaderEnd() or nowMs
for _, hold in ipairs(holds) do latest = math.max(latest, hold.ends) end
return latest
end
local function findHold()
for _, hold in ipairs(holds) do
if hold.names == names then return hold end
end
return findReader(names)
end
local function sharesFence(owner, mode)
if permits then return last > 0 and countOf(owner) > 0 end
return hasHolds() and (mode ~= 'w' or hasWriter())
end
local function raiseFence(owner, mode, least)
if sharesFence(owner, mode) then return end
last = math.max(last + 1, nowUs, least or 0)
if permits then return end
for _, hold in ipairs(holds) do hold.mode = 's' end
if readers == 0 then return end
for _, hold in ipairs(readersIn(1e13)) do
hold.mode = 's'
writeReader(hold)
end
end
local function addHold(hold, owner, least)
raiseFence(owner, hold.mode, least)
if permits then hold.mode = 's' end
if hold.mode == 'w' or not hasHolds() then
holds[#holds + 1] = hold
else
addReader(hold, owner)
end
end
local function sweepQueue()
local first = redis.call('ZRANGE', queue, 0, 0)[1]
waiting = first ~= nil and string.sub(first, 1, 1) ~= ':'
if waiting then return end
if remembering or readers > 0 then
redis.call('ZREMRANGEBYSCORE', queue, 1e9, '(' .. 1e13)
else
redis.call('DEL', queue)
end
end
local function allowGrowth()
redis.call('PEXPIRE', record, 3600000)
end
local function writeRecord()
local latest = math.max(nowMs, math.ceil(last / 1000))
if remembering or readers > 0 then latest = math.max(latest, nowMs + redis.call('PTTL', queue)) end
local flags = (waiting and 'q' or '-') .. (remembering and 'g' or '-')
local head = permits and (waiting or hasHolds()) and string.format('p%04d', permits) or ''
local parts = {head .. string.format('%016.0f', last) .. flags, readers > 0 and '\\n!' or ''}
for _, hold in ipairs(holds) do
latest = math.max(latest, hold.ends)
local kind = hold.isClaim and string.upper(hold.mode) or hold.mode
parts[#parts + 1] = '\\n' .. kind .. hold.ends .. ' ' .. hold.names
end
parts[#parts + 1] = receipts
allowGrowth()
redis.call('SET', record, table.concat(parts), 'PX', latest - nowMs + 3600000)
if not waiting then return end
for name in pairs(lapsed) do suspend(name) end
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
if tonumber(state) == 1e9 or lapsed[name] then return 'passed' end
if tonumber(state) == 2e9 then return 'live' end
if not isCluster then return redis.call('PUBSUB', 'NUMSUB', channels .. name)[2] > 0 and 'live' or 'unreachable' end
local mark = untilMs % 1
return mark > 0 and listenersOf(name) == 0 and mark == serverMark() and 'unreachable' or 'live'
end
local verdicts, owed = {}, {}
local function judgeOnce(name)
if not verdicts[name] then
local known = redis.call('ZMSCORE', queue, ':p' .. name, ':s' .. name)
verdicts[name] = judge(name, known[1], known[2])
owed[name] = tonumber(known[2]) == 2e9 and not lapsed[name]
end
return verdicts[name]
end
local page, at, seen, passed, taken = {}, 1, 0, 0, {}
local isCut = false
local function nextLive()
while true do
if not page[at] then
page, at = redis.call('ZRANGE', queue, passed, passed + (seen == 0 and 0 or 64 - 1)), 1
end
local member = page[at]
if not member or string.sub(member, 1, 1) == ':' then return nil end
isCut = seen >= 4096
if isCut then return nil end
local waiter = not taken[member] and unpackWaiter(member)
local verdict = waiter and judgeOnce(waiter.process)
if verdict == 'live' then return waiter end
at, seen = at + 1, seen + 1
if verdict == 'gone' then dequeue(member, waiter.owner) elseif waiter then passed = passed + 1 end
end
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
local granted = {}
local function handOn()
local paid = {}
local first
repeat
first = nextLive()
if not first or #granted >= 256 or not admits(first.owner, first.mode) then break end
if owed[first.process] then paid[first.process] = true end
for _, waiter in ipairs(withOwner(first)) do
if admits(waiter.owner, waiter.mode) then
dequeue(waiter.member, waiter.owner)
taken[waiter.member] = true
waiter.ends, waiter.isClaim = nowMs + waiter.claim, true
addHold(waiter, waiter.owner)
granted[#granted + 1] = waiter
end
end
until first.mode == 'w'
sweepQueue()
writeRecord()
if waiting then
for name, verdict in pairs(verdicts) do
if verdict == 'unreachable' then suspend(name) end
end
for name in pairs(paid) do redis.call('ZREM', queue, ':s' .. name) end
end
local fence = digits(last)
for _, hold in ipairs(granted) do
if hold.process ~= caller then tell(hold.process, 'granted ' .. hold.id .. ' ' .. fence .. ' ' .. hold.ends) end
end
local isLeft = first and not taken[first.member] and admits(first.owner, first.mode)
if isLeft then tell(first.process, 'next ' .. first.id) end
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
local listed = {[names] = true}
local function list(claimNames, ends)
local process, id = string.match(claimNames, '^(%S+) %S+ (%S+)$')
if process ~= caller or listed[claimNames] then return end
listed[claimNames] = true
reply[#reply + 1] = id
reply[#reply + 1] = last
reply[#reply + 1] = ends
end
for _, hold in ipairs(holds) do
if hold.isClaim then list(hold.names, hold.ends) end
end
for _, hold in ipairs(granted) do list(hold.names, hold.ends) end
if readers == 0 then return reply end
for _, hold in ipairs(readersIn(2e13, nil, 16)) do list(hold.names, hold.ends) end
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
if isOwed then redis.call('ZADD', queue, 2e9, ':s' .. caller) end
keepQueue(spanMs)
end
local leaseMs = tonumber(string.sub(amount, 3, 14))
local minFence = tonumber(ARGV[3] or 0)
local function grantOf(hold)
return withClaims({'granted', nowMs, last, hold.ends, hold.isClaim and 1 or 0, countOf(owner) - 1})
end
local function repeatGrant()
local hold = findHold()
if not hold then return nil end
if #holds + readers == 1 and last < minFence then
last = minFence
writeRecord()
end
return grantOf(hold)
end
local function enter(place, isBlocked)
if isBlocked and countOf(owner) == 0 or not admits(owner, mode) then return nil end
if place then dequeue(ownMember, owner) end
local hold = {names = names, ends = nowMs + leaseMs, mode = mode}
addHold(hold, owner, minFence)
if place then sweepQueue() end
writeRecord()
return grantOf(hold)
end
local function enqueue(place)
local ahead = waiting and redis.call('ZCOUNT', queue, '-inf', '(' .. (place or '0')) or 0
if not place and countOf(owner) > 0 then return 'conflict', 0, ahead end
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
local wanted = tonumber(string.sub(amount, 16))
local function mismatch()
return withClaims({'mismatch', nowMs, permits or 0, 0, 0, 0})
end
if wanted and not text then
permits = wanted
findReaders()
end
local place = redis.call('ZSCORE', queue, ownMember)
local isForgotten = place and not waiting
if isForgotten and not hasHolds() then permits = wanted end
if place then
if permits ~= wanted then return mismatch() end
waiting = true
keepLive()
end
local isBlocked = waiting and (hasWriter() or handOn())
if isCut then isBlocked = not place end
if not waiting and not hasHolds() then permits = wanted end
if permits ~= wanted then return mismatch() end
local grant = repeatGrant() or enter(place, isBlocked)
if grant then return grant end
local status, isNew, ahead = enqueue(place)
if isNew == 1 and ahead == 0 then
grant = enter(true, false)
if grant then return grant end
end
if place and (isForgotten or hasLapsed) then writeRecord() end
local isNewestLost = ARGV[4] and not redis.call('ZSCORE', queue, ARGV[4])
return withClaims({status, nowMs, freeAt(), isNew, ahead, isNewestLost and 1 or 0})`,
};

export const checkRights: RedisScript = {
  name: 'check-rights',
  sha1: '3ffdb891873f73ed9e308ad5d8499278bad56b31',
  source: `local key, channel = KEYS[1], ARGV[1]
local lacking = {}
local function mayCall(name, sub)
if redis.acl_check_cmd then
if sub ~= '' then return redis.acl_check_cmd(name, sub, channel) end
if name == 'PUBLISH' then return redis.acl_check_cmd(name, channel, '') end
return redis.acl_check_cmd(name, key, key, key)
end
local reply
if name == 'PUBLISH' then reply = redis.pcall('PUBLISH', channel, '') end
if name == 'PUBSUB' then reply = redis.pcall('PUBSUB', 'NUMSUB', channel) end
return type(reply) ~= 'table' or not reply.err
end
for i = 2, #ARGV do
local name, sub = string.match(ARGV[i], '^(%S+) ?(%S*)$')
if not mayCall(name, sub) then lacking[#lacking + 1] = ARGV[i] end
end
return lacking`,
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
  sha1: '4e13b759afece16d11f1caf1171ead5fc1bba71d',
  source: `local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])
local permits
if text and string.byte(text) > 57 then
permits = tonumber(string.match(text, '^p(%d%d%d%d)%d'))
if not permits then return redis.error_reply('RLFORMAT the record is of another format') end
text = string.sub(text, 6)
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
local function unpackWaiter(member)
local names, process, owner, id, mode, claim = string.match(member, '^((%S+) (%S+) (%S+)) (%a) (%d+)')
return {
names = names, id = id, owner = owner, process = process, mode = mode, claim = tonumber(claim), member = member
}
end
local function keepQueue(ms)
if redis.call('PTTL', queue) < ms then redis.call('PEXPIRE', queue, ms) end
end
local function removeCounted(member, count)
local known = redis.call('ZMSCORE', queue, member, count)
if not known[1] then return false end
if known[2] == '1' then
redis.call('ZREM', queue, member, count)
else
redis.call('ZREM', queue, member)
redis.call('ZINCRBY', queue, -1, count)
end
return true
end
local function dequeue(member, owner)
return removeCounted(member, ':o' .. owner)
end
local function suspend(name)
if redis.call('ZSCORE', queue, ':p' .. name) then redis.call('ZADD', queue, 1e9, ':s' .. name) end
end
local function readScore(score)
local isClaim = tonumber(score) >= 2e13
return math.floor(score) - (isClaim and 2e13 or 1e13), isClaim, score % 1 > 0
end
local function scoreOf(ends, isClaim, isRaised)
return (isClaim and 2e13 or 1e13) + ends + (isRaised and 0.5 or 0)
end
local readers = 0
local ended = {}
local function countReaders(from, to)
return redis.call('ZCOUNT', queue, from, to or '(' .. 1e15)
end
local function readersIn(from, to, limit)
local list = {}
if countReaders(from, to) == 0 then return list end
to = to or '(' .. 1e15
local found = redis.call('ZRANGE', queue, from, to, 'BYSCORE', 'LIMIT', 0, limit or -1, 'WITHSCORES')
for i = 1, #found, 2 do
local ends, isClaim, isRaised = readScore(found[i + 1])
list[#list + 1] = {names = string.sub(found[i], 3), ends = ends, isClaim = isClaim, mode = isRaised and 's' or 'r'}
end
return list
end
local function writeReader(hold)
redis.call('ZADD', queue, scoreOf(hold.ends, hold.isClaim, hold.mode == 's'), ':h' .. hold.names)
keepQueue(hold.ends - nowMs)
end
local function addReader(hold, owner)
writeReader(hold)
redis.call('ZINCRBY', queue, 1, ':r' .. owner)
readers = readers == 0 and countReaders(1e13) or readers + 1
end
local function findReader(names)
local score = readers > 0 and redis.call('ZSCORE', queue, ':h' .. names)
if not score then return nil end
local ends, isClaim = readScore(score)
return {names = names, ends = ends, isClaim = isClaim}
end
local function removeReader(names, owner)
if readers == 0 or not removeCounted(':h' .. names, ':r' .. owner) then return false end
readers = readers - 1
return true
end
local function readersOf(owner)
return readers > 0 and tonumber(redis.call('ZSCORE', queue, ':r' .. owner) or 0) or 0
end
local function lastReaderEnd()
local latest = nowMs
for _, top in ipairs({1e15, 2e13}) do
local last = redis.call('ZRANGE', queue, '(' .. top, 1e13, 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')
if last[1] then latest = math.max(latest, (readScore(last[2]))) end
end
return latest
end
local function removeEnded(from)
for _, hold in ipairs(readersIn(from, scoreOf(nowMs, from == 2e13, true))) do
local process, owner = string.match(hold.names, '^(%S+) (%S+)')
removeCounted(':h' .. hold.names, ':r' .. owner)
if hold.isClaim then suspend(process) end
ended[hold.names] = true
end
end
local function findReaders()
removeEnded(1e13)
removeEnded(2e13)
readers = countReaders(1e13)
end
if text and string.byte(text, 20) == 33 then findReaders() end
local function hasHolds()
return #holds + readers > 0
end
local function hasWriter()
for _, hold in ipairs(holds) do
if hold.mode == 'w' then return true end
end
return false
end
local function countOf(owner)
local count, middle = readersOf(owner), ' ' .. owner .. ' '
for _, hold in ipairs(holds) do
if string.find(hold.names, middle, 1, true) then count = count + 1 end
end
return count
end
local function countOwners()
local count = #holds + readers
for _, hold in ipairs(holds) do
if readersOf(string.match(hold.names, '^%S+ (%S+)')) > 0 then count = count - 1 end
end
local several = redis.call('ZRANGE', queue, 2, '(' .. 1e9, 'BYSCORE', 'WITHSCORES')
for i = 1, #several, 2 do
if string.sub(several[i], 1, 2) == ':r' then count = count - several[i + 1] + 1 end
end
return count
end
local function admits(owner, mode)
if permits then return #holds + readers < permits or countOf(owner) > 0 or countOwners() < permits end
local middle = ' ' .. owner .. ' '
for _, hold in ipairs(holds) do
if (mode == 'w' or hold.mode == 'w') and not string.find(hold.names, middle, 1, true) then return false end
end
return mode ~= 'w' or readersOf(owner) == readers
end
local function freeAt()
local latest = readers > 0 and lastReaderEnd() or nowMs
for _, hold in ipairs(holds) do latest = math.max(latest, hold.ends) end
return latest
end
local function findHold()
for _, hold in ipairs(holds) do
if hold.names == names then return hold end
end
return findReader(names)
end
local function sharesFence(owner, mode)
if permits then return last > 0 and countOf(owner) > 0 end
return hasHolds() and (mode ~= 'w' or hasWriter())
end
local function raiseFence(owner, mode, least)
if sharesFence(owner, mode) then return end
last = math.max(last + 1, nowUs, least or 0)
if permits then return end
for _, hold in ipairs(holds) do hold.mode = 's' end
if readers == 0 then return end
for _, hold in ipairs(readersIn(1e13)) do
hold.mode = 's'
writeReader(hold)
end
end
local function addHold(hold, owner, least)
raiseFence(owner, hold.mode, least)
if permits then hold.mode = 's' end
if hold.mode == 'w' or not hasHolds() then
holds[#holds + 1] = hold
else
addReader(hold, owner)
end
end
local function sweepQueue()
local first = redis.call('ZRANGE', queue, 0, 0)[1]
waiting = first ~= nil and string.sub(first, 1, 1) ~= ':'
if waiting then return end
if remembering or readers > 0 then
redis.call('ZREMRANGEBYSCORE', queue, 1e9, '(' .. 1e13)
else
redis.call('DEL', queue)
end
end
local function allowGrowth()
redis.call('PEXPIRE', record, 3600000)
end
local function writeRecord()
local latest = math.max(nowMs, math.ceil(last / 1000))
if remembering or readers > 0 then latest = math.max(latest, nowMs + redis.call('PTTL', queue)) end
local flags = (waiting and 'q' or '-') .. (remembering and 'g' or '-')
local head = permits and (waiting or hasHolds()) and string.format('p%04d', permits) or ''
local parts = {head .. string.format('%016.0f', last) .. flags, readers > 0 and '\\n!' or ''}
for _, hold in ipairs(holds) do
latest = math.max(latest, hold.ends)
local kind = hold.isClaim and string.upper(hold.mode) or hold.mode
parts[#parts + 1] = '\\n' .. kind .. hold.ends .. ' ' .. hold.names
end
parts[#parts + 1] = receipts
allowGrowth()
redis.call('SET', record, table.concat(parts), 'PX', latest - nowMs + 3600000)
if not waiting then return end
for name in pairs(lapsed) do suspend(name) end
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
if tonumber(state) == 1e9 or lapsed[name] then return 'passed' end
if tonumber(state) == 2e9 then return 'live' end
if not isCluster then return redis.call('PUBSUB', 'NUMSUB', channels .. name)[2] > 0 and 'live' or 'unreachable' end
local mark = untilMs % 1
return mark > 0 and listenersOf(name) == 0 and mark == serverMark() and 'unreachable' or 'live'
end
local verdicts, owed = {}, {}
local function judgeOnce(name)
if not verdicts[name] then
local known = redis.call('ZMSCORE', queue, ':p' .. name, ':s' .. name)
verdicts[name] = judge(name, known[1], known[2])
owed[name] = tonumber(known[2]) == 2e9 and not lapsed[name]
end
return verdicts[name]
end
local page, at, seen, passed, taken = {}, 1, 0, 0, {}
local isCut = false
local function nextLive()
while true do
if not page[at] then
page, at = redis.call('ZRANGE', queue, passed, passed + (seen == 0 and 0 or 64 - 1)), 1
end
local member = page[at]
if not member or string.sub(member, 1, 1) == ':' then return nil end
isCut = seen >= 4096
if isCut then return nil end
local waiter = not taken[member] and unpackWaiter(member)
local verdict = waiter and judgeOnce(waiter.process)
if verdict == 'live' then return waiter end
at, seen = at + 1, seen + 1
if verdict == 'gone' then dequeue(member, waiter.owner) elseif waiter then passed = passed + 1 end
end
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
local granted = {}
local function handOn()
local paid = {}
local first
repeat
first = nextLive()
if not first or #granted >= 256 or not admits(first.owner, first.mode) then break end
if owed[first.process] then paid[first.process] = true end
for _, waiter in ipairs(withOwner(first)) do
if admits(waiter.owner, waiter.mode) then
dequeue(waiter.member, waiter.owner)
taken[waiter.member] = true
waiter.ends, waiter.isClaim = nowMs + waiter.claim, true
addHold(waiter, waiter.owner)
granted[#granted + 1] = waiter
end
end
until first.mode == 'w'
sweepQueue()
writeRecord()
if waiting then
for name, verdict in pairs(verdicts) do
if verdict == 'unreachable' then suspend(name) end
end
for name in pairs(paid) do redis.call('ZREM', queue, ':s' .. name) end
end
local fence = digits(last)
for _, hold in ipairs(granted) do
if hold.process ~= caller then tell(hold.process, 'granted ' .. hold.id .. ' ' .. fence .. ' ' .. hold.ends) end
end
local isLeft = first and not taken[first.member] and admits(first.owner, first.mode)
if isLeft then tell(first.process, 'next ' .. first.id) end
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
local listed = {[names] = true}
local function list(claimNames, ends)
local process, id = string.match(claimNames, '^(%S+) %S+ (%S+)$')
if process ~= caller or listed[claimNames] then return end
listed[claimNames] = true
reply[#reply + 1] = id
reply[#reply + 1] = last
reply[#reply + 1] = ends
end
for _, hold in ipairs(holds) do
if hold.isClaim then list(hold.names, hold.ends) end
end
for _, hold in ipairs(granted) do list(hold.names, hold.ends) end
if readers == 0 then return reply end
for _, hold in ipairs(readersIn(2e13, nil, 16)) do list(hold.names, hold.ends) end
return reply
end
if not hasHolds() or last ~= tonumber(amount) then return 0 end
local taken = holds
holds = {}
if readers > 0 then
for _, hold in ipairs(readersIn(1e13)) do
removeReader(hold.names, string.match(hold.names, '^%S+ (%S+)'))
taken[#taken + 1] = hold
end
end
handOn()
for _, hold in ipairs(taken) do
local process, id = string.match(hold.names, '^(%S+) %S+ (%S+)$')
tell(process, 'lost ' .. id)
end
return 1`,
};

export const inspect: RedisScript = {
  name: 'inspect',
  sha1: 'fe2c6e6ce08ad103916938541bbe331e382ed967',
  source: `local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local text = redis.call('GET', KEYS[1])
local permits
if text and string.byte(text) > 57 then
permits = tonumber(string.match(text, '^p(%d%d%d%d)%d'))
if not permits then return redis.error_reply('RLFORMAT the record is of another format') end
text = string.sub(text, 6)
end
local function listHolds(onHold)
for kind, sign, ends, names in string.gmatch(text or '', '\\n(%a)(%+?)(%d+) ([^\\n]+)') do
ends = sign == '+' and ends + string.sub(text, 1, 13) or tonumber(ends)
if ends > nowMs then onHold(kind, ends, string.match(names, '^(%S+) (%S+) (%S+)$')) end
end
if not text or string.byte(text, 20) ~= 33 then return end
for _, range in ipairs({{'r', 1e13}, {'R', 2e13}}) do
local kind, from = unpack(range)
local found = redis.call(
'ZRANGE', KEYS[2], from + nowMs + 1, '(' .. from + 1e13, 'BYSCORE', 'LIMIT', 0, 1000, 'WITHSCORES'
)
for i = 1, #found, 2 do
onHold(kind, math.floor(found[i + 1]) - from, string.match(found[i], '^:h(%S+) (%S+) (%S+)$'))
end
end
end
local holds, waiters = {}, {}
local function append(list, ...)
for _, part in ipairs({...}) do list[#list + 1] = part end
end
listHolds(function(kind, ends, process, owner, id)
append(holds, id, owner, process, tonumber(string.sub(text, 1, 16)), ends, kind)
end)
local members = redis.call('ZRANGE', KEYS[2], 0, 1000 - 1, 'WITHSCORES')
for i = 1, #members, 2 do
local process, owner, id, mode, priority = string.match(members[i], '^(%S+) (%S+) (%S+) (%a) %d+ (%-?%d+)$')
if not process then break end
append(waiters, id, owner, process, mode, priority, members[i + 1] + 1e16 + priority * 1e7)
end
return {nowMs, holds, waiters, #holds + #waiters > 0 and permits or nil}`,
};

export const release: RedisScript = {
  name: 'release',
  sha1: 'a8cf6d4a02df064a770a6df8e8b2771f3135372e',
  source: `local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])
local permits
if text and string.byte(text) > 57 then
permits = tonumber(string.match(text, '^p(%d%d%d%d)%d'))
if not permits then return redis.error_reply('RLFORMAT the record is of another format') end
text = string.sub(text, 6)
end
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
local ms, flag = string.match(ARGV[2], '^(%d+) (%d)')
if isOnly and #text - afterHold < 1500 and flag == '1' and tonumber(ms) <= 3600000 then
local atMs, endMs = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(string.sub(text, 21, 33))
if string.byte(text, 21) == 43 then endMs = endMs + string.sub(text, 1, 13) end
local releases = ''
if ms == '0' then
releases = string.sub(text, afterHold)
else
local own = '\\n#' .. string.match(ARGV[1], '^%S+ ')
local from = flag == '1' and string.find(text, own, afterHold, true)
releases = string.sub(text, afterHold, (from or 0) - 1)
while from do
local to = string.find(text, '\\n', from + 1, true)
from = to and string.find(text, own, to, true)
releases = releases .. (to and string.sub(text, to, (from or 0) - 1) or '')
end
releases = releases .. '\\n#' .. ARGV[1] .. ' r' .. time[1] .. '.' .. time[2] .. ' ' .. ms
end
local waitingFlag, rememberingFlag = string.byte(text, 17, 18)
local isRemembering = rememberingFlag == 103
local isQuick = endMs > atMs and (isRemembering or rememberingFlag == 45)
if isQuick and waitingFlag == 45 and not isRemembering then
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
isLive = isLive and not (isLast and isRemembering)
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
local keepMs = 0
if isRemembering then
local nowUs = time[1] .. string.sub('00000' .. time[2], -6)
redis.call('ZREMRANGEBYSCORE', KEYS[2], 1e15, nowUs)
isRemembering = redis.call('ZCOUNT', KEYS[2], nowUs, '+inf') > 0
keepMs = redis.call('PTTL', KEYS[2])
end
if isLast then redis.call('DEL', KEYS[2]) else redis.call('ZREM', KEYS[2], first, ':o' .. owner) end
local hold = '\\nW' .. ends .. ' ' .. process .. ' ' .. owner .. ' ' .. id
local record = fence .. (isLast and '-' or 'q') .. (isRemembering and 'g' or '-') .. hold .. releases
if atMs + claimMs <= endMs then
redis.call('SET', KEYS[1], record, 'KEEPTTL')
else
keepMs = math.max(keepMs, math.max(0, math.ceil(fence / 1000) - atMs) + claimMs)
redis.call('SET', KEYS[1], record, 'PX', keepMs + 3600000)
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
if text and flag ~= '2' and tonumber(ms) <= 3600000 and not ARGV[3] then
local waitingFlag, rememberingFlag, _, kind = string.byte(text, 17, 20)
local atMs = time[1] * 1000 + math.floor(time[2] / 1000)
local isRemembering = rememberingFlag == 103
local isShared = not permits and waitingFlag == 45 and (isRemembering or rememberingFlag == 45)
local line, readers = 19, 0
if isShared and kind == 33 then
line = line + 2
kind = string.byte(text, line + 1)
readers = redis.call('ZCOUNT', KEYS[2], 1e13, '(' .. 1e15)
isShared = readers > 0 and redis.call('ZCOUNT', KEYS[2], 1e13 + atMs + 1, '(' .. 2e13) == readers
end
local rest, isInRecord = line, kind == 114 or kind == 115
if isShared and isInRecord then
local endMs = tonumber(string.sub(text, line + 2, line + 14))
if string.byte(text, line + 2) == 43 then endMs = endMs + string.sub(text, 1, 13) end
isShared = endMs > atMs
rest = string.find(text, '\\n', line + 16, true) or #text + 1
end
local mark = string.byte(text, rest + 1)
isShared = isShared and (isInRecord or readers > 0) and (not mark or mark == 35)
local isFull = ms ~= '0' and #text - rest >= 1500
if isShared and isFull then
local second, us, forMs = string.match(text, '^\\n#%S+ %S+ %S+ %a(%d+)%.(%d+) (%d+)', rest)
isShared = flag == '0' and second * 1000 + math.floor(us / 1000) + forMs > atMs
end
local isOwn = isInRecord and string.sub(text, line + 16, rest - 1) == ARGV[1]
local owner, id = string.match(ARGV[1], '^%S+ (%S+) (%S+)')
if isOwn then
line = rest
elseif isShared then
local hold, count = ':h' .. ARGV[1], ':r' .. owner
local known = redis.call('ZMSCORE', KEYS[2], hold, count)
isOwn = known[1] and known[2] == '1' and redis.call('ZREM', KEYS[2], hold, count) == 2
readers = readers - 1
end
if isShared and isOwn then
local nowUs = time[1] .. string.sub('00000' .. time[2], -6)
if isRemembering then
redis.call('ZREMRANGEBYSCORE', KEYS[2], 1e15, nowUs)
isRemembering = redis.call('ZCOUNT', KEYS[2], nowUs, '+inf') > 0
end
if isFull then
redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), ms + 3600000))
redis.call('ZADD', KEYS[2], string.format('%.0f', nowUs + ms * 1000), ':gr' .. id)
if redis.call('PTTL', KEYS[2]) < tonumber(ms) then redis.call('PEXPIRE', KEYS[2], ms) end
isRemembering, ms = true, '0'
end
afterHold = rest
local releases = ''
if ms == '0' then
releases = string.sub(text, afterHold)
else
local own = '\\n#' .. string.match(ARGV[1], '^%S+ ')
local from = flag == '1' and string.find(text, own, afterHold, true)
releases = string.sub(text, afterHold, (from or 0) - 1)
while from do
local to = string.find(text, '\\n', from + 1, true)
from = to and string.find(text, own, to, true)
releases = releases .. (to and string.sub(text, to, (from or 0) - 1) or '')
end
releases = releases .. '\\n#' .. ARGV[1] .. ' r' .. time[1] .. '.' .. time[2] .. ' ' .. ms
end
local head = string.sub(text, 1, 16) .. '-' .. (isRemembering and 'g' or '-') .. (readers > 0 and '\\n!' or '')
local left = head .. string.sub(text, line, rest - 1) .. releases
if not redis.pcall('SET', KEYS[1], left, 'KEEPTTL').err then return atMs end
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
local function unpackWaiter(member)
local names, process, owner, id, mode, claim = string.match(member, '^((%S+) (%S+) (%S+)) (%a) (%d+)')
return {
names = names, id = id, owner = owner, process = process, mode = mode, claim = tonumber(claim), member = member
}
end
local function keepQueue(ms)
if redis.call('PTTL', queue) < ms then redis.call('PEXPIRE', queue, ms) end
end
local function removeCounted(member, count)
local known = redis.call('ZMSCORE', queue, member, count)
if not known[1] then return false end
if known[2] == '1' then
redis.call('ZREM', queue, member, count)
else
redis.call('ZREM', queue, member)
redis.call('ZINCRBY', queue, -1, count)
end
return true
end
local function dequeue(member, owner)
return removeCounted(member, ':o' .. owner)
end
local function suspend(name)
if redis.call('ZSCORE', queue, ':p' .. name) then redis.call('ZADD', queue, 1e9, ':s' .. name) end
end
local function readScore(score)
local isClaim = tonumber(score) >= 2e13
return math.floor(score) - (isClaim and 2e13 or 1e13), isClaim, score % 1 > 0
end
local function scoreOf(ends, isClaim, isRaised)
return (isClaim and 2e13 or 1e13) + ends + (isRaised and 0.5 or 0)
end
local readers = 0
local ended = {}
local function countReaders(from, to)
return redis.call('ZCOUNT', queue, from, to or '(' .. 1e15)
end
local function readersIn(from, to, limit)
local list = {}
if countReaders(from, to) == 0 then return list end
to = to or '(' .. 1e15
local found = redis.call('ZRANGE', queue, from, to, 'BYSCORE', 'LIMIT', 0, limit or -1, 'WITHSCORES')
for i = 1, #found, 2 do
local ends, isClaim, isRaised = readScore(found[i + 1])
list[#list + 1] = {names = string.sub(found[i], 3), ends = ends, isClaim = isClaim, mode = isRaised and 's' or 'r'}
end
return list
end
local function writeReader(hold)
redis.call('ZADD', queue, scoreOf(hold.ends, hold.isClaim, hold.mode == 's'), ':h' .. hold.names)
keepQueue(hold.ends - nowMs)
end
local function addReader(hold, owner)
writeReader(hold)
redis.call('ZINCRBY', queue, 1, ':r' .. owner)
readers = readers == 0 and countReaders(1e13) or readers + 1
end
local function findReader(names)
local score = readers > 0 and redis.call('ZSCORE', queue, ':h' .. names)
if not score then return nil end
local ends, isClaim = readScore(score)
return {names = names, ends = ends, isClaim = isClaim}
end
local function removeReader(names, owner)
if readers == 0 or not removeCounted(':h' .. names, ':r' .. owner) then return false end
readers = readers - 1
return true
end
local function readersOf(owner)
return readers > 0 and tonumber(redis.call('ZSCORE', queue, ':r' .. owner) or 0) or 0
end
local function lastReaderEnd()
local latest = nowMs
for _, top in ipairs({1e15, 2e13}) do
local last = redis.call('ZRANGE', queue, '(' .. top, 1e13, 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')
if last[1] then latest = math.max(latest, (readScore(last[2]))) end
end
return latest
end
local function removeEnded(from)
for _, hold in ipairs(readersIn(from, scoreOf(nowMs, from == 2e13, true))) do
local process, owner = string.match(hold.names, '^(%S+) (%S+)')
removeCounted(':h' .. hold.names, ':r' .. owner)
if hold.isClaim then suspend(process) end
ended[hold.names] = true
end
end
local function findReaders()
removeEnded(1e13)
removeEnded(2e13)
readers = countReaders(1e13)
end
if text and string.byte(text, 20) == 33 then findReaders() end
local function hasHolds()
return #holds + readers > 0
end
local function hasWriter()
for _, hold in ipairs(holds) do
if hold.mode == 'w' then return true end
end
return false
end
local function countOf(owner)
local count, middle = readersOf(owner), ' ' .. owner .. ' '
for _, hold in ipairs(holds) do
if string.find(hold.names, middle, 1, true) then count = count + 1 end
end
return count
end
local function countOwners()
local count = #holds + readers
for _, hold in ipairs(holds) do
if readersOf(string.match(hold.names, '^%S+ (%S+)')) > 0 then count = count - 1 end
end
local several = redis.call('ZRANGE', queue, 2, '(' .. 1e9, 'BYSCORE', 'WITHSCORES')
for i = 1, #several, 2 do
if string.sub(several[i], 1, 2) == ':r' then count = count - several[i + 1] + 1 end
end
return count
end
local function admits(owner, mode)
if permits then return #holds + readers < permits or countOf(owner) > 0 or countOwners() < permits end
local middle = ' ' .. owner .. ' '
for _, hold in ipairs(holds) do
if (mode == 'w' or hold.mode == 'w') and not string.find(hold.names, middle, 1, true) then return false end
end
return mode ~= 'w' or readersOf(owner) == readers
end
local function freeAt()
local latest = readers > 0 and lastReaderEnd() or nowMs
for _, hold in ipairs(holds) do latest = math.max(latest, hold.ends) end
return latest
end
local function findHold()
for _, hold in ipairs(holds) do
if hold.names == names then return hold end
end
return findReader(names)
end
local function sharesFence(owner, mode)
if permits then return last > 0 and countOf(owner) > 0 end
return hasHolds() and (mode ~= 'w' or hasWriter())
end
local function raiseFence(owner, mode, least)
if sharesFence(owner, mode) then return end
last = math.max(last + 1, nowUs, least or 0)
if permits then return end
for _, hold in ipairs(holds) do hold.mode = 's' end
if readers == 0 then return end
for _, hold in ipairs(readersIn(1e13)) do
hold.mode = 's'
writeReader(hold)
end
end
local function addHold(hold, owner, least)
raiseFence(owner, hold.mode, least)
if permits then hold.mode = 's' end
if hold.mode == 'w' or not hasHolds() then
holds[#holds + 1] = hold
else
addReader(hold, owner)
end
end
local function sweepQueue()
local first = redis.call('ZRANGE', queue, 0, 0)[1]
waiting = first ~= nil and string.sub(first, 1, 1) ~= ':'
if waiting then return end
if remembering or readers > 0 then
redis.call('ZREMRANGEBYSCORE', queue, 1e9, '(' .. 1e13)
else
redis.call('DEL', queue)
end
end
local function allowGrowth()
redis.call('PEXPIRE', record, 3600000)
end
local function writeRecord()
local latest = math.max(nowMs, math.ceil(last / 1000))
if remembering or readers > 0 then latest = math.max(latest, nowMs + redis.call('PTTL', queue)) end
local flags = (waiting and 'q' or '-') .. (remembering and 'g' or '-')
local head = permits and (waiting or hasHolds()) and string.format('p%04d', permits) or ''
local parts = {head .. string.format('%016.0f', last) .. flags, readers > 0 and '\\n!' or ''}
for _, hold in ipairs(holds) do
latest = math.max(latest, hold.ends)
local kind = hold.isClaim and string.upper(hold.mode) or hold.mode
parts[#parts + 1] = '\\n' .. kind .. hold.ends .. ' ' .. hold.names
end
parts[#parts + 1] = receipts
allowGrowth()
redis.call('SET', record, table.concat(parts), 'PX', latest - nowMs + 3600000)
if not waiting then return end
for name in pairs(lapsed) do suspend(name) end
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
if tonumber(state) == 1e9 or lapsed[name] then return 'passed' end
if tonumber(state) == 2e9 then return 'live' end
if not isCluster then return redis.call('PUBSUB', 'NUMSUB', channels .. name)[2] > 0 and 'live' or 'unreachable' end
local mark = untilMs % 1
return mark > 0 and listenersOf(name) == 0 and mark == serverMark() and 'unreachable' or 'live'
end
local verdicts, owed = {}, {}
local function judgeOnce(name)
if not verdicts[name] then
local known = redis.call('ZMSCORE', queue, ':p' .. name, ':s' .. name)
verdicts[name] = judge(name, known[1], known[2])
owed[name] = tonumber(known[2]) == 2e9 and not lapsed[name]
end
return verdicts[name]
end
local page, at, seen, passed, taken = {}, 1, 0, 0, {}
local isCut = false
local function nextLive()
while true do
if not page[at] then
page, at = redis.call('ZRANGE', queue, passed, passed + (seen == 0 and 0 or 64 - 1)), 1
end
local member = page[at]
if not member or string.sub(member, 1, 1) == ':' then return nil end
isCut = seen >= 4096
if isCut then return nil end
local waiter = not taken[member] and unpackWaiter(member)
local verdict = waiter and judgeOnce(waiter.process)
if verdict == 'live' then return waiter end
at, seen = at + 1, seen + 1
if verdict == 'gone' then dequeue(member, waiter.owner) elseif waiter then passed = passed + 1 end
end
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
local granted = {}
local function handOn()
local paid = {}
local first
repeat
first = nextLive()
if not first or #granted >= 256 or not admits(first.owner, first.mode) then break end
if owed[first.process] then paid[first.process] = true end
for _, waiter in ipairs(withOwner(first)) do
if admits(waiter.owner, waiter.mode) then
dequeue(waiter.member, waiter.owner)
taken[waiter.member] = true
waiter.ends, waiter.isClaim = nowMs + waiter.claim, true
addHold(waiter, waiter.owner)
granted[#granted + 1] = waiter
end
end
until first.mode == 'w'
sweepQueue()
writeRecord()
if waiting then
for name, verdict in pairs(verdicts) do
if verdict == 'unreachable' then suspend(name) end
end
for name in pairs(paid) do redis.call('ZREM', queue, ':s' .. name) end
end
local fence = digits(last)
for _, hold in ipairs(granted) do
if hold.process ~= caller then tell(hold.process, 'granted ' .. hold.id .. ' ' .. fence .. ' ' .. hold.ends) end
end
local isLeft = first and not taken[first.member] and admits(first.owner, first.mode)
if isLeft then tell(first.process, 'next ' .. first.id) end
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
local listed = {[names] = true}
local function list(claimNames, ends)
local process, id = string.match(claimNames, '^(%S+) %S+ (%S+)$')
if process ~= caller or listed[claimNames] then return end
listed[claimNames] = true
reply[#reply + 1] = id
reply[#reply + 1] = last
reply[#reply + 1] = ends
end
for _, hold in ipairs(holds) do
if hold.isClaim then list(hold.names, hold.ends) end
end
for _, hold in ipairs(granted) do list(hold.names, hold.ends) end
if readers == 0 then return reply end
for _, hold in ipairs(readersIn(2e13, nil, 16)) do list(hold.names, hold.ends) end
return reply
end
local function remove()
for i, hold in ipairs(holds) do
if hold.names == names then
table.remove(holds, i)
return 'released'
end
end
return removeReader(names, owner) and 'released' or nil
end
local function cancel()
if dequeue(ownMember, owner) then
sweepQueue()
return 'cancelled'
end
local wasHeld = ended[names] or text and string.find(text .. '\\n', ' ' .. names .. '\\n', 19, true)
return wasHeld and 'expired' or 'absent'
end
local function forgetOwnReleases()
receipts = string.gsub(receipts, '\\n#(%S+)[^\\n]*', function(process) return process == caller and '' or nil end)
end
local function forgetOldReleases()
local line = '\\n#%S+ %S+ %S+ %a(%d+)%.(%d+) (%d+)'
local second, us, ms = string.match(receipts, '^' .. line)
if untilMs(second, us, ms) > nowMs then return end
receipts = string.gsub(receipts, line, function(...) return untilMs(...) <= nowMs and '' or nil end)
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
if flag ~= '2' and rememberMs <= 3600000 and #receipts <= 1500 then
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
if ARGV[3] and not hasHolds() and status ~= 'absent' then
redis.call('PUBLISH', channels .. 'freed', 'freed ' .. ARGV[3])
end
return withClaims({status, nowMs})`,
};

export const renew: RedisScript = {
  name: 'renew',
  sha1: '8d8742ca70e29d8a0a11ba1d144c0c7352477175',
  source: `local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])
local permits
if text and string.byte(text) > 57 then
permits = tonumber(string.match(text, '^p(%d%d%d%d)%d'))
if not permits then return redis.error_reply('RLFORMAT the record is of another format') end
text = string.sub(text, 6)
end
local function readScore(score)
local isClaim = tonumber(score) >= 2e13
return math.floor(score) - (isClaim and 2e13 or 1e13), isClaim, score % 1 > 0
end
local function scoreOf(ends, isClaim, isRaised)
return (isClaim and 2e13 or 1e13) + ends + (isRaised and 0.5 or 0)
end
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local leaseMs, fence = tonumber(string.match(ARGV[2], '^%d+')), tonumber(ARGV[3])
local function extend(ends, isRaised)
local last = tonumber(string.sub(text, 1, 16))
if ends <= nowMs or fence ~= last and not (isRaised and fence < last) then return nil end
redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), leaseMs + 3600000))
return math.max(ends, nowMs + leaseMs)
end
local function renewLine()
local at = string.find(text .. '\\n', ' ' .. ARGV[1] .. '\\n', 19, true)
if not at then return nil end
local kind, ends = string.sub(text, at - 14, at - 14), string.sub(text, at - 13, at - 1)
ends = string.byte(ends) == 43 and ends + string.sub(text, 1, 13) or tonumber(ends)
ends = extend(ends, kind == 's' or kind == 'S')
if not ends then return nil end
local line = string.lower(kind) .. ends
local head = permits and string.format('p%04d', permits) or ''
redis.call('SET', KEYS[1], head .. string.sub(text, 1, at - 15) .. line .. string.sub(text, at), 'KEEPTTL')
return ends
end
local function renewReader()
local score = string.byte(text, 20) == 33 and redis.call('ZSCORE', KEYS[2], ':h' .. ARGV[1])
if not score then return nil end
local ends, _, isRaised = readScore(score)
ends = extend(ends, isRaised)
if not ends then return nil end
redis.call('ZADD', KEYS[2], scoreOf(ends, false, isRaised), ':h' .. ARGV[1])
if redis.call('PTTL', KEYS[2]) < ends - nowMs then redis.call('PEXPIRE', KEYS[2], ends - nowMs) end
return ends
end
local ends = text and (renewLine() or renewReader())
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

export const transfer: RedisScript = {
  name: 'transfer',
  sha1: '03352d0f8c0377586260063b61361f9d332ce6b6',
  source: `local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])
local permits
if text and string.byte(text) > 57 then
permits = tonumber(string.match(text, '^p(%d%d%d%d)%d'))
if not permits then return redis.error_reply('RLFORMAT the record is of another format') end
text = string.sub(text, 6)
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
local function unpackWaiter(member)
local names, process, owner, id, mode, claim = string.match(member, '^((%S+) (%S+) (%S+)) (%a) (%d+)')
return {
names = names, id = id, owner = owner, process = process, mode = mode, claim = tonumber(claim), member = member
}
end
local function keepQueue(ms)
if redis.call('PTTL', queue) < ms then redis.call('PEXPIRE', queue, ms) end
end
local function removeCounted(member, count)
local known = redis.call('ZMSCORE', queue, member, count)
if not known[1] then return false end
if known[2] == '1' then
redis.call('ZREM', queue, member, count)
else
redis.call('ZREM', queue, member)
redis.call('ZINCRBY', queue, -1, count)
end
return true
end
local function dequeue(member, owner)
return removeCounted(member, ':o' .. owner)
end
local function suspend(name)
if redis.call('ZSCORE', queue, ':p' .. name) then redis.call('ZADD', queue, 1e9, ':s' .. name) end
end
local function readScore(score)
local isClaim = tonumber(score) >= 2e13
return math.floor(score) - (isClaim and 2e13 or 1e13), isClaim, score % 1 > 0
end
local function scoreOf(ends, isClaim, isRaised)
return (isClaim and 2e13 or 1e13) + ends + (isRaised and 0.5 or 0)
end
local readers = 0
local ended = {}
local function countReaders(from, to)
return redis.call('ZCOUNT', queue, from, to or '(' .. 1e15)
end
local function readersIn(from, to, limit)
local list = {}
if countReaders(from, to) == 0 then return list end
to = to or '(' .. 1e15
local found = redis.call('ZRANGE', queue, from, to, 'BYSCORE', 'LIMIT', 0, limit or -1, 'WITHSCORES')
for i = 1, #found, 2 do
local ends, isClaim, isRaised = readScore(found[i + 1])
list[#list + 1] = {names = string.sub(found[i], 3), ends = ends, isClaim = isClaim, mode = isRaised and 's' or 'r'}
end
return list
end
local function writeReader(hold)
redis.call('ZADD', queue, scoreOf(hold.ends, hold.isClaim, hold.mode == 's'), ':h' .. hold.names)
keepQueue(hold.ends - nowMs)
end
local function addReader(hold, owner)
writeReader(hold)
redis.call('ZINCRBY', queue, 1, ':r' .. owner)
readers = readers == 0 and countReaders(1e13) or readers + 1
end
local function findReader(names)
local score = readers > 0 and redis.call('ZSCORE', queue, ':h' .. names)
if not score then return nil end
local ends, isClaim = readScore(score)
return {names = names, ends = ends, isClaim = isClaim}
end
local function removeReader(names, owner)
if readers == 0 or not removeCounted(':h' .. names, ':r' .. owner) then return false end
readers = readers - 1
return true
end
local function readersOf(owner)
return readers > 0 and tonumber(redis.call('ZSCORE', queue, ':r' .. owner) or 0) or 0
end
local function lastReaderEnd()
local latest = nowMs
for _, top in ipairs({1e15, 2e13}) do
local last = redis.call('ZRANGE', queue, '(' .. top, 1e13, 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')
if last[1] then latest = math.max(latest, (readScore(last[2]))) end
end
return latest
end
local function removeEnded(from)
for _, hold in ipairs(readersIn(from, scoreOf(nowMs, from == 2e13, true))) do
local process, owner = string.match(hold.names, '^(%S+) (%S+)')
removeCounted(':h' .. hold.names, ':r' .. owner)
if hold.isClaim then suspend(process) end
ended[hold.names] = true
end
end
local function findReaders()
removeEnded(1e13)
removeEnded(2e13)
readers = countReaders(1e13)
end
if text and string.byte(text, 20) == 33 then findReaders() end
local function hasHolds()
return #holds + readers > 0
end
local function hasWriter()
for _, hold in ipairs(holds) do
if hold.mode == 'w' then return true end
end
return false
end
local function countOf(owner)
local count, middle = readersOf(owner), ' ' .. owner .. ' '
for _, hold in ipairs(holds) do
if string.find(hold.names, middle, 1, true) then count = count + 1 end
end
return count
end
local function countOwners()
local count = #holds + readers
for _, hold in ipairs(holds) do
if readersOf(string.match(hold.names, '^%S+ (%S+)')) > 0 then count = count - 1 end
end
local several = redis.call('ZRANGE', queue, 2, '(' .. 1e9, 'BYSCORE', 'WITHSCORES')
for i = 1, #several, 2 do
if string.sub(several[i], 1, 2) == ':r' then count = count - several[i + 1] + 1 end
end
return count
end
local function admits(owner, mode)
if permits then return #holds + readers < permits or countOf(owner) > 0 or countOwners() < permits end
local middle = ' ' .. owner .. ' '
for _, hold in ipairs(holds) do
if (mode == 'w' or hold.mode == 'w') and not string.find(hold.names, middle, 1, true) then return false end
end
return mode ~= 'w' or readersOf(owner) == readers
end
local function freeAt()
local latest = readers > 0 and lastReaderEnd() or nowMs
for _, hold in ipairs(holds) do latest = math.max(latest, hold.ends) end
return latest
end
local function findHold()
for _, hold in ipairs(holds) do
if hold.names == names then return hold end
end
return findReader(names)
end
local function sharesFence(owner, mode)
if permits then return last > 0 and countOf(owner) > 0 end
return hasHolds() and (mode ~= 'w' or hasWriter())
end
local function raiseFence(owner, mode, least)
if sharesFence(owner, mode) then return end
last = math.max(last + 1, nowUs, least or 0)
if permits then return end
for _, hold in ipairs(holds) do hold.mode = 's' end
if readers == 0 then return end
for _, hold in ipairs(readersIn(1e13)) do
hold.mode = 's'
writeReader(hold)
end
end
local function addHold(hold, owner, least)
raiseFence(owner, hold.mode, least)
if permits then hold.mode = 's' end
if hold.mode == 'w' or not hasHolds() then
holds[#holds + 1] = hold
else
addReader(hold, owner)
end
end
local function sweepQueue()
local first = redis.call('ZRANGE', queue, 0, 0)[1]
waiting = first ~= nil and string.sub(first, 1, 1) ~= ':'
if waiting then return end
if remembering or readers > 0 then
redis.call('ZREMRANGEBYSCORE', queue, 1e9, '(' .. 1e13)
else
redis.call('DEL', queue)
end
end
local function allowGrowth()
redis.call('PEXPIRE', record, 3600000)
end
local function writeRecord()
local latest = math.max(nowMs, math.ceil(last / 1000))
if remembering or readers > 0 then latest = math.max(latest, nowMs + redis.call('PTTL', queue)) end
local flags = (waiting and 'q' or '-') .. (remembering and 'g' or '-')
local head = permits and (waiting or hasHolds()) and string.format('p%04d', permits) or ''
local parts = {head .. string.format('%016.0f', last) .. flags, readers > 0 and '\\n!' or ''}
for _, hold in ipairs(holds) do
latest = math.max(latest, hold.ends)
local kind = hold.isClaim and string.upper(hold.mode) or hold.mode
parts[#parts + 1] = '\\n' .. kind .. hold.ends .. ' ' .. hold.names
end
parts[#parts + 1] = receipts
allowGrowth()
redis.call('SET', record, table.concat(parts), 'PX', latest - nowMs + 3600000)
if not waiting then return end
for name in pairs(lapsed) do suspend(name) end
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
if tonumber(state) == 1e9 or lapsed[name] then return 'passed' end
if tonumber(state) == 2e9 then return 'live' end
if not isCluster then return redis.call('PUBSUB', 'NUMSUB', channels .. name)[2] > 0 and 'live' or 'unreachable' end
local mark = untilMs % 1
return mark > 0 and listenersOf(name) == 0 and mark == serverMark() and 'unreachable' or 'live'
end
local verdicts, owed = {}, {}
local function judgeOnce(name)
if not verdicts[name] then
local known = redis.call('ZMSCORE', queue, ':p' .. name, ':s' .. name)
verdicts[name] = judge(name, known[1], known[2])
owed[name] = tonumber(known[2]) == 2e9 and not lapsed[name]
end
return verdicts[name]
end
local page, at, seen, passed, taken = {}, 1, 0, 0, {}
local isCut = false
local function nextLive()
while true do
if not page[at] then
page, at = redis.call('ZRANGE', queue, passed, passed + (seen == 0 and 0 or 64 - 1)), 1
end
local member = page[at]
if not member or string.sub(member, 1, 1) == ':' then return nil end
isCut = seen >= 4096
if isCut then return nil end
local waiter = not taken[member] and unpackWaiter(member)
local verdict = waiter and judgeOnce(waiter.process)
if verdict == 'live' then return waiter end
at, seen = at + 1, seen + 1
if verdict == 'gone' then dequeue(member, waiter.owner) elseif waiter then passed = passed + 1 end
end
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
local granted = {}
local function handOn()
local paid = {}
local first
repeat
first = nextLive()
if not first or #granted >= 256 or not admits(first.owner, first.mode) then break end
if owed[first.process] then paid[first.process] = true end
for _, waiter in ipairs(withOwner(first)) do
if admits(waiter.owner, waiter.mode) then
dequeue(waiter.member, waiter.owner)
taken[waiter.member] = true
waiter.ends, waiter.isClaim = nowMs + waiter.claim, true
addHold(waiter, waiter.owner)
granted[#granted + 1] = waiter
end
end
until first.mode == 'w'
sweepQueue()
writeRecord()
if waiting then
for name, verdict in pairs(verdicts) do
if verdict == 'unreachable' then suspend(name) end
end
for name in pairs(paid) do redis.call('ZREM', queue, ':s' .. name) end
end
local fence = digits(last)
for _, hold in ipairs(granted) do
if hold.process ~= caller then tell(hold.process, 'granted ' .. hold.id .. ' ' .. fence .. ' ' .. hold.ends) end
end
local isLeft = first and not taken[first.member] and admits(first.owner, first.mode)
if isLeft then tell(first.process, 'next ' .. first.id) end
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
local listed = {[names] = true}
local function list(claimNames, ends)
local process, id = string.match(claimNames, '^(%S+) %S+ (%S+)$')
if process ~= caller or listed[claimNames] then return end
listed[claimNames] = true
reply[#reply + 1] = id
reply[#reply + 1] = last
reply[#reply + 1] = ends
end
for _, hold in ipairs(holds) do
if hold.isClaim then list(hold.names, hold.ends) end
end
for _, hold in ipairs(granted) do list(hold.names, hold.ends) end
if readers == 0 then return reply end
for _, hold in ipairs(readersIn(2e13, nil, 16)) do list(hold.names, hold.ends) end
return reply
end
local function remove()
for i, hold in ipairs(holds) do
if hold.names == names then
table.remove(holds, i)
return 'released'
end
end
return removeReader(names, owner) and 'released' or nil
end
local function cancel()
if dequeue(ownMember, owner) then
sweepQueue()
return 'cancelled'
end
local wasHeld = ended[names] or text and string.find(text .. '\\n', ' ' .. names .. '\\n', 19, true)
return wasHeld and 'expired' or 'absent'
end
local function forgetOwnReleases()
receipts = string.gsub(receipts, '\\n#(%S+)[^\\n]*', function(process) return process == caller and '' or nil end)
end
local function forgetOldReleases()
local line = '\\n#%S+ %S+ %S+ %a(%d+)%.(%d+) (%d+)'
local second, us, ms = string.match(receipts, '^' .. line)
if untilMs(second, us, ms) > nowMs then return end
receipts = string.gsub(receipts, line, function(...) return untilMs(...) <= nowMs and '' or nil end)
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
if flag ~= '2' and rememberMs <= 3600000 and #receipts <= 1500 then
receipts = receipts .. '\\n#' .. names .. ' ' .. letter .. time[1] .. '.' .. time[2] .. ' ' .. amount
else
allowGrowth()
redis.call('ZADD', queue, digits(nowUs + rememberMs * 1000), ':g' .. letter .. holdId)
keepQueue(rememberMs)
remembering = true
end
return true
end
local own = findHold()
if own then return {'granted', nowMs, last, own.ends} end
local wasReleased = recall()
local hold, newOwner = {names = names, ends = nowMs + tonumber(amount), mode = mode}, owner
names, amount = ARGV[3], ARGV[4]
caller, owner, holdId = string.match(names, '^(%S+) (%S+) (%S+)$')
if wasReleased or not findHold() then return {'lost', nowMs} end
local isShared = mode == 'w' and #holds + readers > 1 or mode ~= 'w' and hasWriter() or permits and countOf(owner) > 1
if isShared then return {'shared', nowMs} end
remember(remove())
addHold(hold, newOwner)
writeRecord()
return {'granted', nowMs, last, hold.ends}`,
};

export const wait: RedisScript = {
  name: 'wait',
  sha1: 'd2457ae238004a92dd582d41acdf17c0dbf56134',
  source: `local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local text = redis.call('GET', KEYS[1])
local permits
if text and string.byte(text) > 57 then
permits = tonumber(string.match(text, '^p(%d%d%d%d)%d'))
if not permits then return redis.error_reply('RLFORMAT the record is of another format') end
text = string.sub(text, 6)
end
local function listHolds(onHold)
for kind, sign, ends, names in string.gmatch(text or '', '\\n(%a)(%+?)(%d+) ([^\\n]+)') do
ends = sign == '+' and ends + string.sub(text, 1, 13) or tonumber(ends)
if ends > nowMs then onHold(kind, ends, string.match(names, '^(%S+) (%S+) (%S+)$')) end
end
if not text or string.byte(text, 20) ~= 33 then return end
for _, range in ipairs({{'r', 1e13}, {'R', 2e13}}) do
local kind, from = unpack(range)
local found = redis.call(
'ZRANGE', KEYS[2], from + nowMs + 1, '(' .. from + 1e13, 'BYSCORE', 'LIMIT', 0, 1000, 'WITHSCORES'
)
for i = 1, #found, 2 do
onHold(kind, math.floor(found[i + 1]) - from, string.match(found[i], '^:h(%S+) (%S+) (%S+)$'))
end
end
end
local place = redis.call('ZSCORE', KEYS[2], ARGV[1])
local priority = string.match(ARGV[1], '(%-?%d+)$')
local reply = {place and place + 1e16 + priority * 1e7}
listHolds(function(_, _, _, owner, id)
reply[#reply + 1] = id
reply[#reply + 1] = owner
reply[#reply + 1] = tonumber(string.sub(text, 1, 16))
end)
return reply`,
};
