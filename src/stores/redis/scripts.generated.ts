// Generated from lua/*.lua by `node scripts/build-lua.mjs`. Do not edit.
import type { RedisScript } from './scripts.ts';

export const acquire: RedisScript = {
  name: 'acquire',
  sha1: '2cf47157864983ff44d13d772f67e38163c5e060',
  source: `local process, owner, hold, mode, recordTtlMs, minFence = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[6], tonumber(ARGV[8] or 0)
local time = redis.call('TIME')
local nowUs = time[1] * 1e6 + time[2]
local nowMs = math.floor(nowUs / 1000)
local format, fence, ends, queued, buriedUntilMs, onlyId = unpack(redis.call(
'HMGET', KEYS[1], 'format', 'fence', 'ends', 'queued', 'tombstones', 'hold'
))
if format and format ~= '1' then return redis.error_reply('RLFORMAT the lock is of another format') end
local count, claims, onlyOwner, onlyProcess, leastMode = 0, 0, nil, nil, nil
local endMs = nowMs + ARGV[5]
if not ends and not queued and not buriedUntilMs then
local last = tonumber(fence or 0)
local raised = math.max(nowUs, last + 1, minFence)
fence = raised == nowUs and time[1] .. string.sub('00000' .. time[2], -6) or string.format('%.0f', raised)
if claims == 1 then
redis.call(
'HSET', KEYS[1], 'fence', fence, 'ends', endMs, 'hold', hold, 'owner', owner, 'process', process, 'mode', mode, 'claims', '1'
)
else
redis.call(
'HSET', KEYS[1], 'format', '1', 'fence', fence, 'ends', endMs, 'hold', hold, 'owner', owner, 'process', process
)
if mode ~= 'write' then redis.call('HSET', KEYS[1], 'mode', mode) end
end
count, ends, onlyId, onlyOwner, onlyProcess, leastMode = 1, endMs, hold, owner, process, mode
if raised ~= nowUs or math.floor(last / 6e7) ~= math.floor(raised / 6e7) or endMs - nowMs > 4e4 then
local untilMs = endMs
local keepMs = math.max(untilMs, math.ceil((fence or 0) / 1000), buriedUntilMs or 0) - nowMs + recordTtlMs + 1e5
redis.call('PEXPIRE', KEYS[1], keepMs)
end
if raised == nowUs then return fence end
return {'granted', nowMs, fence, endMs, 0, 0, 0}
end
local mayQueue, claimMs, priority, maxWaiters, livenessMs, channels = string.match(
ARGV[7], '^(%d) (%d+) ([^ ]+) (%d+) (%d+) ([^ ]+)$'
)
local several, isMixed, grants
local isStale = false
ends = tonumber(ends or 0)
if ends == 0 then
onlyId = nil
elseif onlyId then
count, onlyOwner, onlyProcess, leastMode, claims = 1, unpack(redis.call('HMGET', KEYS[1], 'owner', 'process', 'mode', 'claims'))
else
several, leastMode, claims, isMixed, grants = unpack(redis.call('HMGET', KEYS[1], 'holds', 'mode', 'claims', 'mixed', 'grants'))
count = tonumber(several or 1)
end
leastMode, claims = leastMode or 'write', tonumber(claims or 0)
local function done(reply)
if isStale then redis.call('DEL', KEYS[2], KEYS[3]) end
return reply
end
local function tombstoneOf(id)
local tombstone = tonumber(tonumber(buriedUntilMs or 0) > nowMs and redis.call('ZSCORE', KEYS[6], id) or 0)
return tombstone > nowMs and tombstone
end
local function limitOf(mode)
if mode == 'write' then return 1 end
return tonumber(mode) or math.huge
end
local function fieldsOf(prefix, owner, fields)
local at = string.find(owner, '/', 1, true)
while at do
fields[#fields + 1] = prefix .. string.sub(owner, 1, at - 1)
at = string.find(owner, '/', at + 1, true)
end
fields[#fields + 1] = prefix .. owner
return fields
end
local function isAncestor(ancestor, owner)
return ancestor == owner or #ancestor < #owner and string.sub(owner, 1, #ancestor + 1) == ancestor .. '/'
end
local function hasExpired()
return count > 0 and (ends <= nowMs or several and redis.call('ZCOUNT', KEYS[3], '-inf', nowMs) > 0)
end
local function readHold(id)
if several then return redis.call('HGET', KEYS[2], 'h:' .. id) end
if not id or id ~= onlyId then return nil end
return onlyProcess .. ' ' .. onlyOwner .. ' ' .. leastMode .. ' ' .. fence .. ' 1' .. (claims > 0 and ' claim' or '')
end
local function endOf(id)
return several and tonumber(redis.call('ZSCORE', KEYS[3], id) or ends) or ends
end
local function familyOf(owner, id)
if not several then
if count == 0 or not isAncestor(onlyOwner, owner) then return 0, 0, 0, readHold(id) end
return 1, #fieldsOf('', onlyOwner, {}), onlyOwner == owner and 1 or 0, readHold(id)
end
local found = redis.call('HMGET', KEYS[2], unpack(fieldsOf('o:', owner, {'h:' .. (id or '')})))
local sum, depth = 0, 0
for i = 2, #found do
if found[i] then sum, depth = sum + found[i], i - 1 end
end
return sum, depth, tonumber(found[#found] or 0), found[1]
end
local function othersOf(hold, family, number)
if hold.hasNoFamily then return 0, 0 end
local _
if not family then family, _, number = familyOf(hold.owner) end
if hold.mode ~= 'read' then return family - 1, number - 1 end
local equal = 0
if number > 1 and leastMode ~= 'read' then
for _, text in ipairs(redis.call('HVALS', KEYS[2])) do
local _, owner, mode = string.match(text, '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%d+)(.*)$')
if owner == hold.owner and mode ~= 'read' then equal = equal + 1 end
end
end
return family - 1, equal
end
local function listHolds(from, to, most)
local ids, list = count > 0 and {onlyId, ends} or {}, {}
if several then ids = redis.call('ZRANGE', KEYS[3], from, to, 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES') end
for i = 1, #ids, 2 do
local process, owner, mode, _, nr, claim = string.match(readHold(ids[i]) or '', '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%d+)(.*)$')
list[#list + 1] = process and {
id = ids[i], process = process, owner = owner, mode = mode, nr = tonumber(nr), isClaim = claim ~= '', endMs = ids[i + 1]
}
end
table.sort(list, function(a, b) return a.nr < b.nr end)
return list
end
if tombstoneOf(hold) then return {'cancelled', nowMs} end
local isCluster = string.find(channels, '{', 1, true)
local granted, taken, isDequeued = {}, {}, false
local tellGranted, handOffWithin
local function readWaiter(id)
local text = redis.call('HGET', KEYS[5], 'w:' .. id) or '- - write 0 0 0'
local process, owner, mode, claimMs, priority, sinceUs = string.match(text, '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%S+)%s(%d+)$')
return {
id = id, process = process, owner = owner, mode = mode, endMs = nowMs + claimMs, isClaim = true,
priority = priority, sinceUs = sinceUs,
}
end
local function readFamily(waiter)
waiter.fields = fieldsOf('c:', waiter.owner, {'p:' .. waiter.process})
waiter.said = redis.call('HMGET', KEYS[5], unpack(waiter.fields))
end
local function setState(name, known, state)
redis.call('HSET', KEYS[5], 'p:' .. name, (string.gsub(known, ' %a+', ' ' .. state, 1)))
end
local function placeOf(sinceUs, priority, front)
if priority == '0' and front == 0 then return sinceUs end
return sinceUs - priority * 1e7 - front * 1e14
end
local function dropQueue()
redis.call('DEL', KEYS[5])
redis.call('HDEL', KEYS[1], 'queued')
queued = false
end
local function dequeue(id, fields, said, isOnly)
local over = {'w:' .. id}
isDequeued = true
redis.call('ZREM', KEYS[4], id)
if isOnly then return dropQueue() end
for i = 2, #fields do
if tonumber(said[i] or 1) > 1 then
redis.call('HINCRBY', KEYS[5], fields[i], '-1')
else
over[#over + 1] = fields[i]
end
end
redis.call('HDEL', KEYS[5], unpack(over))
end
local function listenersOf(name)
local number, server = redis.pcall('PUBSUB', 'SHARDNUMSUB', KEYS[1] .. ':' .. name)[2], redis.pcall('CLUSTER', 'MYID')
return number or 0, type(server) == 'string' and ' ' .. server or ''
end
if hasExpired() then
local function clear()
redis.call('HDEL', KEYS[1], 'ends','hold','owner','process','mode','claims', 'holds', 'grants', 'mixed')
isStale = isStale or several
count, ends, claims, several, isMixed, onlyId, grants, leastMode = 0, 0, 0, nil, nil, nil, nil, 'write'
end
local function findLeast()
local most = 0
leastMode = 'read'
for _, text in ipairs(redis.call('HVALS', KEYS[2])) do
local _, _, mode = string.match(text, '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%d+)(.*)$')
if mode then
most = math.max(most, limitOf(mode))
if limitOf(mode) < limitOf(leastMode) then leastMode = mode end
end
end
isMixed = most > limitOf(leastMode)
redis.call('HSET', KEYS[1], 'mode', leastMode)
if not isMixed then redis.call('HDEL', KEYS[1], 'mixed') end
end
local function remove(id, owner, isClaim, number)
if count == 1 then return clear() end
redis.call('ZREM', KEYS[3], id)
if (number or redis.call('HGET', KEYS[2], 'o:' .. owner)) == '1' then
redis.call('HDEL', KEYS[2], 'h:' .. id, 'o:' .. owner)
else
redis.call('HDEL', KEYS[2], 'h:' .. id)
redis.call('HINCRBY', KEYS[2], 'o:' .. owner, '-1')
end
local _, latest = unpack(redis.call('ZRANGE', KEYS[3], '-1', '-1', 'WITHSCORES'))
count, ends = count - 1, tonumber(latest or ends)
redis.call('HSET', KEYS[1], 'holds', count, 'ends', ends)
if isClaim then
claims = claims - 1
redis.call('HSET', KEYS[1], 'claims', claims)
end
if isMixed then findLeast() end
end
local function dropExpired()
if not hasExpired() then return {} end
local ended = listHolds('-inf', nowMs, count)
if #ended > 0 and ends <= nowMs then clear() end
for _, hold in ipairs(ended) do
if count > 0 then remove(hold.id, hold.owner, hold.isClaim) end
local known = hold.isClaim and queued and redis.call('HGET', KEYS[5], 'p:' .. hold.process)
if known then setState(hold.process, known, 'suspended') end
end
return ended
end
dropExpired()
end
local fields = fieldsOf('c:', owner, {'p:' .. process})
local said = queued and redis.call('HMGET', KEYS[5], 'w:' .. hold, unpack(fields)) or {false}
local isWaiting = table.remove(said, 1)
local function markLive(changes)
local liveUntilMs, state, knownMark = string.match(said[1] or '0 live', '^(%d+)%s(%a+)(.*)$')
local listeners, server = 0, ''
if isCluster then listeners, server = listenersOf(process) end
local mark = listeners > 0 and server or ''
local isMarked = state ~= 'suspended' and mark == knownMark and liveUntilMs - nowMs >= tonumber(livenessMs)
local spanMs = math.ceil(livenessMs * 1.1)
if not isMarked then
if state == 'suspended' then state = 'owed' end
changes[#changes + 1] = 'p:' .. process
changes[#changes + 1] = string.format('%.0f %s', math.max(nowMs + spanMs, liveUntilMs), state .. mark)
end
if #changes == 0 then return end
if isWaiting then redis.call('HDEL', KEYS[1], '') end
redis.call('HSET', KEYS[5], unpack(changes))
if isMarked or (queued and redis.call('PTTL', KEYS[5]) >= spanMs) then return end
redis.call('PEXPIRE', KEYS[4], 2 * spanMs)
redis.call('PEXPIRE', KEYS[5], 2 * spanMs)
end
local family, depth, number, isHeld = familyOf(owner, hold)
local isPoll, reply = isWaiting or isHeld, nil
if isWaiting then markLive({}) end
if family > 0 or count == 0 or limitOf(leastMode) > 1 or queued == 'front' then
local isBlocked = false
local function branchesBeside(owner)
local others, above, number = {}, {}, 0
for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do
local other = string.match(field, '^o:(.*)$')
if other and not isAncestor(other, owner) then
others[#others + 1] = other
for _, ancestor in ipairs(fieldsOf('', other, {})) do above[ancestor] = (above[ancestor] or 0) + 1 end
end
end
for _, other in ipairs(others) do
if above[other] == 1 then number = number + 1 end
end
return number
end
local function admits(owner, mode, family)
local outside, most = count - family, math.min(limitOf(leastMode), limitOf(mode))
if outside == 0 or outside < most then return true end
return most > 1 and branchesBeside(owner) < most
end
local function sharesFence(hold, family)
local limit = limitOf(hold.mode)
if hold.fence or hold.mode == 'read' then return true end
if family == 0 or limitOf(leastMode) > limit then return false end
if limit == 1 or not isMixed then return true end
for _, text in ipairs(redis.call('HVALS', KEYS[2])) do
local _, other, mode = string.match(text, '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%d+)(.*)$')
if other and isAncestor(other, hold.owner) and limitOf(mode) <= limit then return true end
end
return false
end
local function addBeside(hold, number)
grants = (grants or 0) + 1
local text = table.concat({hold.process, hold.owner, hold.mode, hold.fence or fence, grants, hold.isClaim and 'claim' or nil}, ' ')
redis.call('HSET', KEYS[2], 'h:' .. hold.id, text, 'o:' .. hold.owner, number)
redis.call('ZADD', KEYS[3], hold.endMs, hold.id)
end
local function moveBeside()
local fields, ids = isStale and redis.call('HKEYS', KEYS[2]) or {}, isStale and redis.call('ZRANGE', KEYS[3], 0, -1) or {}
addBeside({id = onlyId, process = onlyProcess, owner = onlyOwner, mode = leastMode, isClaim = claims > 0, endMs = ends}, 1)
for _, field in ipairs(fields) do
if field ~= 'h:' .. onlyId and field ~= 'o:' .. onlyOwner then redis.call('HDEL', KEYS[2], field) end
end
for _, id in ipairs(ids) do
if id ~= onlyId then redis.call('ZREM', KEYS[3], id) end
end
redis.call('HDEL', KEYS[1], 'hold', 'owner', 'process')
several, isStale = true, false
end
local function grantBeside(hold, family, number)
local wanted, most = limitOf(hold.mode), limitOf(leastMode)
local isKept = several and math.floor(hold.endMs / 6e4) <= math.floor(ends / 6e4)
if not several then moveBeside() end
if not sharesFence(hold, family) then
local raised = math.max(nowUs, fence + 1, hold.minFence or 0)
fence, isKept = string.format('%.0f', raised), isKept and raised == nowUs
end
count, ends = count + 1, math.max(ends, hold.endMs)
addBeside(hold, number + 1)
redis.call('HSET', KEYS[1], 'fence', fence, 'ends', ends, 'holds', count, 'grants', grants)
if hold.isClaim then
claims = claims + 1
redis.call('HSET', KEYS[1], 'claims', claims)
end
if wanted ~= most then
isMixed = true
redis.call('HSET', KEYS[1], 'mixed', 1)
end
if wanted < most then
leastMode = hold.mode
redis.call('HSET', KEYS[1], 'mode', leastMode)
end
if isKept then return end
local untilMs = ends
local keepMs = math.max(untilMs, math.ceil((fence or 0) / 1000), buriedUntilMs or 0) - nowMs + recordTtlMs + 1e5
redis.call('PEXPIRE', KEYS[1], keepMs)
redis.call('PEXPIRE', KEYS[2], keepMs)
redis.call('PEXPIRE', KEYS[3], keepMs)
end
if queued then
local function tell(name, message)
local heard = isCluster and tonumber(redis.pcall('SPUBLISH', KEYS[1] .. ':' .. name, message))
if not heard or heard == 0 then redis.call('PUBLISH', channels .. name, message) end
end
tellGranted = function(from)
for i = from, #granted do
local waiter = granted[i]
if waiter.process ~= process then
tell(waiter.process, table.concat({'granted', waiter.id, fence, waiter.endMs, othersOf(waiter)}, ' '))
end
end
end
local page, at, isLast, passed, seen = {}, 1, false, 0, 0
local verdicts, paid = {}, {}
local function judge(name, known)
local liveUntilMs, state, mark = string.match(known or '0 live', '^(%d+)%s(%a+)(.*)$')
if tonumber(liveUntilMs) <= nowMs then return 'gone' end
if state == 'owed' then paid[name] = known end
if name == process or state == 'owed' then return 'live' end
if state == 'suspended' then return 'passed' end
local isDeaf
if isCluster then
local number, server = listenersOf(name)
isDeaf = mark ~= '' and number == 0 and mark == server
else
isDeaf = redis.call('PUBSUB', 'NUMSUB', channels .. name)[2] == 0
end
if not isDeaf then return 'live' end
redis.call('HDEL', KEYS[1], '')
setState(name, known, 'suspended')
return 'passed'
end
local function nextLive()
while true do
if not page[at] and not isLast then
local size = seen == 0 and 1 or 64
page = seen == 0 and redis.call('ZRANGE', KEYS[4], '0', '1') or redis.call('ZRANGE', KEYS[4], passed, passed + size)
at = 1
isLast, page[size + 1] = not page[size + 1], nil
end
local id = page[at]
if not id then break end
if seen >= 4096 then return true end
local waiter = not taken[id] and readWaiter(id)
local verdict = waiter and verdicts[waiter.process]
if waiter and verdict ~= 'passed' then
readFamily(waiter)
verdict = verdict or judge(waiter.process, waiter.said[1])
verdicts[waiter.process] = verdict
if verdict == 'live' then return waiter end
if verdict == 'gone' then dequeue(id, waiter.fields, waiter.said) end
end
if verdict == 'passed' then passed = passed + 1 end
at, seen = at + 1, seen + 1
end
if passed == 0 then dropQueue() end
end
local mayHandOff = count == 0 or limitOf(leastMode) > 1
if not mayHandOff and queued == 'front' then
local id, place = unpack(redis.call('ZRANGE', KEYS[4], '0', '0', 'WITHSCORES'))
local waiter = id and readWaiter(id)
mayHandOff = id and tonumber(place) < tonumber(placeOf(waiter.sinceUs, waiter.priority, 0))
end
local nextWaiter = mayHandOff and nextLive()
local goesOn = nextWaiter and nextWaiter ~= true
if goesOn and count == 0 then
local first = nextWaiter
local hold, owner, process, mode, endMs, minFence = first.id, first.owner, first.process, first.mode, first.endMs, 0
goesOn = limitOf(mode) > 1 or tonumber(first.said[#first.said] or 0) > 1
dequeue(hold, first.fields, first.said, not goesOn and isLast and passed == 0 and not page[at + 1])
if queued and paid[process] then setState(process, paid[process], 'live') end
claims = 1
local last = tonumber(fence or 0)
local raised = math.max(nowUs, last + 1, minFence)
fence = raised == nowUs and time[1] .. string.sub('00000' .. time[2], -6) or string.format('%.0f', raised)
if claims == 1 then
redis.call(
'HSET', KEYS[1], 'fence', fence, 'ends', endMs, 'hold', hold, 'owner', owner, 'process', process, 'mode', mode, 'claims', '1'
)
else
redis.call(
'HSET', KEYS[1], 'format', '1', 'fence', fence, 'ends', endMs, 'hold', hold, 'owner', owner, 'process', process
)
if mode ~= 'write' then redis.call('HSET', KEYS[1], 'mode', mode) end
end
count, ends, onlyId, onlyOwner, onlyProcess, leastMode = 1, endMs, hold, owner, process, mode
if raised ~= nowUs or math.floor(last / 6e7) ~= math.floor(raised / 6e7) or endMs - nowMs > 4e4 then
local untilMs = endMs
local keepMs = math.max(untilMs, math.ceil((fence or 0) / 1000), buriedUntilMs or 0) - nowMs + recordTtlMs + 1e5
redis.call('PEXPIRE', KEYS[1], keepMs)
end
granted[1], taken[hold] = first, true
if not goesOn then nextWaiter = nil end
end
local function claim(waiter, family, number)
dequeue(waiter.id, waiter.fields, waiter.said)
waiter.hasNoFamily = family == 0 and waiter.said[2] == '1'
granted[#granted + 1], taken[waiter.id] = waiter, true
grantBeside(waiter, family, number)
end
local function within(owner)
local left, found, from = tonumber(redis.call('HGET', KEYS[5], 'c:' .. owner) or 0), {}, 0
while left > 0 and from < 4096 do
local ids = redis.call('ZRANGE', KEYS[4], from, from + 64 - 1)
if #ids == 0 then break end
for _, id in ipairs(ids) do
local waiter = readWaiter(id)
if isAncestor(owner, waiter.owner) then
found[#found + 1], left = waiter, left - 1
end
end
from = from + 64
end
return found
end
handOffWithin = function(owner)
local nested, left = within(owner), {}
local size = #nested > 0 and redis.call('ZCARD', KEYS[4])
for _, waiter in ipairs(nested) do
local family, _, number = familyOf(waiter.owner)
if admits(waiter.owner, waiter.mode, family) then
readFamily(waiter)
claim(waiter, family, number)
else
left[#left + 1] = waiter
end
end
for _, waiter in ipairs(left) do
local _, depth = familyOf(waiter.owner)
redis.call('ZADD', KEYS[4], 'LT', placeOf(waiter.sinceUs, waiter.priority, depth), waiter.id)
end
if #left > 0 then
redis.call('HSET', KEYS[1], 'queued', 'front')
queued = 'front'
end
if #nested > 0 then page, at, isLast, passed = {}, 1, size + #left == #nested, 0 end
end
while goesOn do
if taken[nextWaiter.id] then
if tonumber(nextWaiter.said[#nextWaiter.said] or 0) > 1 then handOffWithin(nextWaiter.owner) end
nextWaiter = limitOf(nextWaiter.mode) > 1 and nextLive()
if not nextWaiter or nextWaiter == true then break end
end
local family, _, number = familyOf(nextWaiter.owner)
goesOn = admits(nextWaiter.owner, nextWaiter.mode, family)
if not goesOn or #granted >= 256 then break end
if paid[nextWaiter.process] then setState(nextWaiter.process, paid[nextWaiter.process], 'live') end
claim(nextWaiter, family, number)
end
if goesOn and nextWaiter and nextWaiter ~= true then tell(nextWaiter.process, 'next ' .. nextWaiter.id) end
tellGranted(1)
isBlocked = nextWaiter and not (nextWaiter == true and isWaiting)
if isDequeued then said = queued and redis.call('HMGET', KEYS[5], unpack(fields)) or {} end
if #granted > 0 then family, depth, number, isHeld = familyOf(owner, hold) end
end
if not isHeld and isBlocked and family == 0 and not isWaiting and mayQueue == '1' and admits(owner, mode, family) then
local _, first = unpack(redis.call('ZRANGE', KEYS[4], '0', '0', 'WITHSCORES'))
isBlocked = redis.call('ZCARD', KEYS[4]) >= tonumber(maxWaiters) or tonumber(placeOf(nowUs, priority, 0)) >= tonumber(first)
if not isBlocked then markLive({}) end
end
if isHeld then
if count == 1 and minFence > tonumber(fence) then
fence = string.format('%.0f', minFence)
redis.call('HSET', KEYS[1], 'fence', fence)
local untilMs = ends
local keepMs = math.max(untilMs, math.ceil((fence or 0) / 1000), buriedUntilMs or 0) - nowMs + recordTtlMs + 1e5
redis.call('PEXPIRE', KEYS[1], keepMs)
end
local isClaim = string.find(isHeld, ' claim$') and 1 or 0
reply = {'granted', nowMs, fence, endOf(hold), isClaim, othersOf({owner = owner, mode = mode}, family, number)}
elseif admits(owner, mode, family) and (family > 0 or not isBlocked) then
if isWaiting then dequeue(hold, fields, said) end
if count > 0 then
local own = {id = hold, process = process, owner = owner, mode = mode, endMs = endMs, minFence = minFence}
grantBeside(own, family, number)
else
local last = tonumber(fence or 0)
local raised = math.max(nowUs, last + 1, minFence)
fence = raised == nowUs and time[1] .. string.sub('00000' .. time[2], -6) or string.format('%.0f', raised)
if claims == 1 then
redis.call(
'HSET', KEYS[1], 'fence', fence, 'ends', endMs, 'hold', hold, 'owner', owner, 'process', process, 'mode', mode, 'claims', '1'
)
else
redis.call(
'HSET', KEYS[1], 'format', '1', 'fence', fence, 'ends', endMs, 'hold', hold, 'owner', owner, 'process', process
)
if mode ~= 'write' then redis.call('HSET', KEYS[1], 'mode', mode) end
end
count, ends, onlyId, onlyOwner, onlyProcess, leastMode = 1, endMs, hold, owner, process, mode
if raised ~= nowUs or math.floor(last / 6e7) ~= math.floor(raised / 6e7) or endMs - nowMs > 4e4 then
local untilMs = endMs
local keepMs = math.max(untilMs, math.ceil((fence or 0) / 1000), buriedUntilMs or 0) - nowMs + recordTtlMs + 1e5
redis.call('PEXPIRE', KEYS[1], keepMs)
end
end
family, number = family + 1, number + 1
for _, waiter in ipairs(granted) do waiter.hasNoFamily = false end
local told = #granted
if queued then
handOffWithin(owner)
tellGranted(told + 1)
if #granted > told then family, depth, number = familyOf(owner) end
end
reply = {'granted', nowMs, fence, endMs, 0, othersOf({owner = owner, mode = mode}, family, number)}
end
end
if not reply then
local position = isWaiting and redis.call('ZRANK', KEYS[4], hold) or queued and redis.call('ZCARD', KEYS[4]) or 0
local status, isNewestLost = 'queued', ARGV[9] and redis.call('HEXISTS', KEYS[5], 'w:' .. ARGV[9]) == 0
if not isWaiting and family > 0 and limitOf(mode) < limitOf(leastMode) then
status = 'conflict'
elseif mayQueue == '0' then
status = 'refused'
elseif not isWaiting and position >= tonumber(maxWaiters) then
status = 'full'
elseif not isWaiting then
if not queued and redis.call('ZCARD', KEYS[4]) > 0 then
redis.call('DEL', KEYS[4], KEYS[5])
elseif queued and position == 0 then
redis.call('DEL', KEYS[5])
said = {}
end
local sinceUs = string.format('%.0f', nowUs)
redis.call('ZADD', KEYS[4], placeOf(sinceUs, priority, depth), hold)
local changes = {'w:' .. hold, process .. ' ' .. owner .. ' ' .. mode .. ' ' .. claimMs .. ' ' .. priority .. ' ' .. sinceUs}
for i = 2, #fields do
changes[#changes + 1] = fields[i]
changes[#changes + 1] = said[i] and said[i] + 1 or '1'
end
markLive(changes)
local flag = (depth > 0 or queued == 'front') and 'front' or 'yes'
if flag ~= queued then redis.call('HSET', KEYS[1], 'queued', flag) end
if position > 0 then position = redis.call('ZRANK', KEYS[4], hold) end
end
reply = {status, nowMs, ends, position, isWaiting and 0 or 1, isNewestLost and 1 or 0}
end
if isPoll or #granted > 0 then
local function append(claim)
for _, each in ipairs({claim.id, fence, claim.endMs, othersOf(claim)}) do reply[#reply + 1] = each end
end
for _, waiter in ipairs(granted) do
if waiter.process == process and waiter.id ~= hold then append(waiter) end
end
if isPoll and claims > 0 then
for _, other in ipairs(listHolds(nowMs, '+inf', 64)) do
if other.isClaim and other.process == process and other.id ~= hold and not taken[other.id] then append(other) end
end
end
end
return done(reply)`,
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

export const edges: RedisScript = {
  name: 'edges',
  sha1: 'd417f5146fd704c37b5972d8fb6d42a8677dce4a',
  source: `local edges, edge, ttlMs = KEYS[1], ARGV[1], tonumber(ARGV[2])
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
if not edge then return redis.call('ZRANGE', edges, '+inf', '(' .. nowMs, 'BYSCORE', 'REV', 'LIMIT', 0, 64) end
if ttlMs == 0 then
redis.call('ZREM', edges, edge)
return {}
end
local leftMs = redis.call('PTTL', edges)
redis.call('PEXPIRE', edges, math.max(leftMs, ttlMs))
redis.call('ZADD', edges, nowMs + ttlMs, edge)
if leftMs < 0 then redis.call('PEXPIRE', edges, ttlMs) end
redis.call('ZREMRANGEBYSCORE', edges, '-inf', nowMs)
return {}`,
};

export const forceRelease: RedisScript = {
  name: 'force-release',
  sha1: '22b0290d854243150d4fff60d9884724390175dd',
  source: `local recordTtlMs, channels, process, hold = ARGV[2], ARGV[3], '', ''
local time = redis.call('TIME')
local nowUs = time[1] * 1e6 + time[2]
local nowMs = math.floor(nowUs / 1000)
local format, fence, ends, queued, buriedUntilMs, onlyId = unpack(redis.call(
'HMGET', KEYS[1], 'format', 'fence', 'ends', 'queued', 'tombstones', 'hold'
))
if format and format ~= '1' then return redis.error_reply('RLFORMAT the lock is of another format') end
local count, claims, onlyOwner, onlyProcess, leastMode = 0, 0, nil, nil, nil
local several, isMixed, grants
local isStale = false
ends = tonumber(ends or 0)
if ends == 0 then
onlyId = nil
elseif onlyId then
count, onlyOwner, onlyProcess, leastMode, claims = 1, unpack(redis.call('HMGET', KEYS[1], 'owner', 'process', 'mode', 'claims'))
else
several, leastMode, claims, isMixed, grants = unpack(redis.call('HMGET', KEYS[1], 'holds', 'mode', 'claims', 'mixed', 'grants'))
count = tonumber(several or 1)
end
leastMode, claims = leastMode or 'write', tonumber(claims or 0)
local function done(reply)
if isStale then redis.call('DEL', KEYS[2], KEYS[3]) end
return reply
end
local function tombstoneOf(id)
local tombstone = tonumber(tonumber(buriedUntilMs or 0) > nowMs and redis.call('ZSCORE', KEYS[6], id) or 0)
return tombstone > nowMs and tombstone
end
local function limitOf(mode)
if mode == 'write' then return 1 end
return tonumber(mode) or math.huge
end
local function fieldsOf(prefix, owner, fields)
local at = string.find(owner, '/', 1, true)
while at do
fields[#fields + 1] = prefix .. string.sub(owner, 1, at - 1)
at = string.find(owner, '/', at + 1, true)
end
fields[#fields + 1] = prefix .. owner
return fields
end
local function isAncestor(ancestor, owner)
return ancestor == owner or #ancestor < #owner and string.sub(owner, 1, #ancestor + 1) == ancestor .. '/'
end
local function hasExpired()
return count > 0 and (ends <= nowMs or several and redis.call('ZCOUNT', KEYS[3], '-inf', nowMs) > 0)
end
local function readHold(id)
if several then return redis.call('HGET', KEYS[2], 'h:' .. id) end
if not id or id ~= onlyId then return nil end
return onlyProcess .. ' ' .. onlyOwner .. ' ' .. leastMode .. ' ' .. fence .. ' 1' .. (claims > 0 and ' claim' or '')
end
local function endOf(id)
return several and tonumber(redis.call('ZSCORE', KEYS[3], id) or ends) or ends
end
local function familyOf(owner, id)
if not several then
if count == 0 or not isAncestor(onlyOwner, owner) then return 0, 0, 0, readHold(id) end
return 1, #fieldsOf('', onlyOwner, {}), onlyOwner == owner and 1 or 0, readHold(id)
end
local found = redis.call('HMGET', KEYS[2], unpack(fieldsOf('o:', owner, {'h:' .. (id or '')})))
local sum, depth = 0, 0
for i = 2, #found do
if found[i] then sum, depth = sum + found[i], i - 1 end
end
return sum, depth, tonumber(found[#found] or 0), found[1]
end
local function othersOf(hold, family, number)
if hold.hasNoFamily then return 0, 0 end
local _
if not family then family, _, number = familyOf(hold.owner) end
if hold.mode ~= 'read' then return family - 1, number - 1 end
local equal = 0
if number > 1 and leastMode ~= 'read' then
for _, text in ipairs(redis.call('HVALS', KEYS[2])) do
local _, owner, mode = string.match(text, '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%d+)(.*)$')
if owner == hold.owner and mode ~= 'read' then equal = equal + 1 end
end
end
return family - 1, equal
end
local function listHolds(from, to, most)
local ids, list = count > 0 and {onlyId, ends} or {}, {}
if several then ids = redis.call('ZRANGE', KEYS[3], from, to, 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES') end
for i = 1, #ids, 2 do
local process, owner, mode, _, nr, claim = string.match(readHold(ids[i]) or '', '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%d+)(.*)$')
list[#list + 1] = process and {
id = ids[i], process = process, owner = owner, mode = mode, nr = tonumber(nr), isClaim = claim ~= '', endMs = ids[i + 1]
}
end
table.sort(list, function(a, b) return a.nr < b.nr end)
return list
end
local isCluster = string.find(channels, '{', 1, true)
local granted, taken, isDequeued = {}, {}, false
local tellGranted, handOffWithin
local function readWaiter(id)
local text = redis.call('HGET', KEYS[5], 'w:' .. id) or '- - write 0 0 0'
local process, owner, mode, claimMs, priority, sinceUs = string.match(text, '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%S+)%s(%d+)$')
return {
id = id, process = process, owner = owner, mode = mode, endMs = nowMs + claimMs, isClaim = true,
priority = priority, sinceUs = sinceUs,
}
end
local function readFamily(waiter)
waiter.fields = fieldsOf('c:', waiter.owner, {'p:' .. waiter.process})
waiter.said = redis.call('HMGET', KEYS[5], unpack(waiter.fields))
end
local function setState(name, known, state)
redis.call('HSET', KEYS[5], 'p:' .. name, (string.gsub(known, ' %a+', ' ' .. state, 1)))
end
local function placeOf(sinceUs, priority, front)
if priority == '0' and front == 0 then return sinceUs end
return sinceUs - priority * 1e7 - front * 1e14
end
local function dropQueue()
redis.call('DEL', KEYS[5])
redis.call('HDEL', KEYS[1], 'queued')
queued = false
end
local function dequeue(id, fields, said, isOnly)
local over = {'w:' .. id}
isDequeued = true
redis.call('ZREM', KEYS[4], id)
if isOnly then return dropQueue() end
for i = 2, #fields do
if tonumber(said[i] or 1) > 1 then
redis.call('HINCRBY', KEYS[5], fields[i], '-1')
else
over[#over + 1] = fields[i]
end
end
redis.call('HDEL', KEYS[5], unpack(over))
end
local function listenersOf(name)
local number, server = redis.pcall('PUBSUB', 'SHARDNUMSUB', KEYS[1] .. ':' .. name)[2], redis.pcall('CLUSTER', 'MYID')
return number or 0, type(server) == 'string' and ' ' .. server or ''
end
local function clear()
redis.call('HDEL', KEYS[1], 'ends','hold','owner','process','mode','claims', 'holds', 'grants', 'mixed')
isStale = isStale or several
count, ends, claims, several, isMixed, onlyId, grants, leastMode = 0, 0, 0, nil, nil, nil, nil, 'write'
end
local function findLeast()
local most = 0
leastMode = 'read'
for _, text in ipairs(redis.call('HVALS', KEYS[2])) do
local _, _, mode = string.match(text, '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%d+)(.*)$')
if mode then
most = math.max(most, limitOf(mode))
if limitOf(mode) < limitOf(leastMode) then leastMode = mode end
end
end
isMixed = most > limitOf(leastMode)
redis.call('HSET', KEYS[1], 'mode', leastMode)
if not isMixed then redis.call('HDEL', KEYS[1], 'mixed') end
end
local function remove(id, owner, isClaim, number)
if count == 1 then return clear() end
redis.call('ZREM', KEYS[3], id)
if (number or redis.call('HGET', KEYS[2], 'o:' .. owner)) == '1' then
redis.call('HDEL', KEYS[2], 'h:' .. id, 'o:' .. owner)
else
redis.call('HDEL', KEYS[2], 'h:' .. id)
redis.call('HINCRBY', KEYS[2], 'o:' .. owner, '-1')
end
local _, latest = unpack(redis.call('ZRANGE', KEYS[3], '-1', '-1', 'WITHSCORES'))
count, ends = count - 1, tonumber(latest or ends)
redis.call('HSET', KEYS[1], 'holds', count, 'ends', ends)
if isClaim then
claims = claims - 1
redis.call('HSET', KEYS[1], 'claims', claims)
end
if isMixed then findLeast() end
end
local function dropExpired()
if not hasExpired() then return {} end
local ended = listHolds('-inf', nowMs, count)
if #ended > 0 and ends <= nowMs then clear() end
for _, hold in ipairs(ended) do
if count > 0 then remove(hold.id, hold.owner, hold.isClaim) end
local known = hold.isClaim and queued and redis.call('HGET', KEYS[5], 'p:' .. hold.process)
if known then setState(hold.process, known, 'suspended') end
end
return ended
end
dropExpired()
if count == 0 or tonumber(fence) ~= tonumber(ARGV[1]) then return done(0) end
local lost = listHolds('-inf', '+inf', count)
clear()
local function branchesBeside(owner)
local others, above, number = {}, {}, 0
for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do
local other = string.match(field, '^o:(.*)$')
if other and not isAncestor(other, owner) then
others[#others + 1] = other
for _, ancestor in ipairs(fieldsOf('', other, {})) do above[ancestor] = (above[ancestor] or 0) + 1 end
end
end
for _, other in ipairs(others) do
if above[other] == 1 then number = number + 1 end
end
return number
end
local function admits(owner, mode, family)
local outside, most = count - family, math.min(limitOf(leastMode), limitOf(mode))
if outside == 0 or outside < most then return true end
return most > 1 and branchesBeside(owner) < most
end
local function sharesFence(hold, family)
local limit = limitOf(hold.mode)
if hold.fence or hold.mode == 'read' then return true end
if family == 0 or limitOf(leastMode) > limit then return false end
if limit == 1 or not isMixed then return true end
for _, text in ipairs(redis.call('HVALS', KEYS[2])) do
local _, other, mode = string.match(text, '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%d+)(.*)$')
if other and isAncestor(other, hold.owner) and limitOf(mode) <= limit then return true end
end
return false
end
local function addBeside(hold, number)
grants = (grants or 0) + 1
local text = table.concat({hold.process, hold.owner, hold.mode, hold.fence or fence, grants, hold.isClaim and 'claim' or nil}, ' ')
redis.call('HSET', KEYS[2], 'h:' .. hold.id, text, 'o:' .. hold.owner, number)
redis.call('ZADD', KEYS[3], hold.endMs, hold.id)
end
local function moveBeside()
local fields, ids = isStale and redis.call('HKEYS', KEYS[2]) or {}, isStale and redis.call('ZRANGE', KEYS[3], 0, -1) or {}
addBeside({id = onlyId, process = onlyProcess, owner = onlyOwner, mode = leastMode, isClaim = claims > 0, endMs = ends}, 1)
for _, field in ipairs(fields) do
if field ~= 'h:' .. onlyId and field ~= 'o:' .. onlyOwner then redis.call('HDEL', KEYS[2], field) end
end
for _, id in ipairs(ids) do
if id ~= onlyId then redis.call('ZREM', KEYS[3], id) end
end
redis.call('HDEL', KEYS[1], 'hold', 'owner', 'process')
several, isStale = true, false
end
local function grantBeside(hold, family, number)
local wanted, most = limitOf(hold.mode), limitOf(leastMode)
local isKept = several and math.floor(hold.endMs / 6e4) <= math.floor(ends / 6e4)
if not several then moveBeside() end
if not sharesFence(hold, family) then
local raised = math.max(nowUs, fence + 1, hold.minFence or 0)
fence, isKept = string.format('%.0f', raised), isKept and raised == nowUs
end
count, ends = count + 1, math.max(ends, hold.endMs)
addBeside(hold, number + 1)
redis.call('HSET', KEYS[1], 'fence', fence, 'ends', ends, 'holds', count, 'grants', grants)
if hold.isClaim then
claims = claims + 1
redis.call('HSET', KEYS[1], 'claims', claims)
end
if wanted ~= most then
isMixed = true
redis.call('HSET', KEYS[1], 'mixed', 1)
end
if wanted < most then
leastMode = hold.mode
redis.call('HSET', KEYS[1], 'mode', leastMode)
end
if isKept then return end
local untilMs = ends
local keepMs = math.max(untilMs, math.ceil((fence or 0) / 1000), buriedUntilMs or 0) - nowMs + recordTtlMs + 1e5
redis.call('PEXPIRE', KEYS[1], keepMs)
redis.call('PEXPIRE', KEYS[2], keepMs)
redis.call('PEXPIRE', KEYS[3], keepMs)
end
local function tell(name, message)
local heard = isCluster and tonumber(redis.pcall('SPUBLISH', KEYS[1] .. ':' .. name, message))
if not heard or heard == 0 then redis.call('PUBLISH', channels .. name, message) end
end
tellGranted = function(from)
for i = from, #granted do
local waiter = granted[i]
if waiter.process ~= process then
tell(waiter.process, table.concat({'granted', waiter.id, fence, waiter.endMs, othersOf(waiter)}, ' '))
end
end
end
local page, at, isLast, passed, seen = {}, 1, false, 0, 0
local verdicts, paid = {}, {}
local function judge(name, known)
local liveUntilMs, state, mark = string.match(known or '0 live', '^(%d+)%s(%a+)(.*)$')
if tonumber(liveUntilMs) <= nowMs then return 'gone' end
if state == 'owed' then paid[name] = known end
if name == process or state == 'owed' then return 'live' end
if state == 'suspended' then return 'passed' end
local isDeaf
if isCluster then
local number, server = listenersOf(name)
isDeaf = mark ~= '' and number == 0 and mark == server
else
isDeaf = redis.call('PUBSUB', 'NUMSUB', channels .. name)[2] == 0
end
if not isDeaf then return 'live' end
redis.call('HDEL', KEYS[1], '')
setState(name, known, 'suspended')
return 'passed'
end
local function nextLive()
while true do
if not page[at] and not isLast then
local size = seen == 0 and 1 or 64
page = seen == 0 and redis.call('ZRANGE', KEYS[4], '0', '1') or redis.call('ZRANGE', KEYS[4], passed, passed + size)
at = 1
isLast, page[size + 1] = not page[size + 1], nil
end
local id = page[at]
if not id then break end
if seen >= 4096 then return true end
local waiter = not taken[id] and readWaiter(id)
local verdict = waiter and verdicts[waiter.process]
if waiter and verdict ~= 'passed' then
readFamily(waiter)
verdict = verdict or judge(waiter.process, waiter.said[1])
verdicts[waiter.process] = verdict
if verdict == 'live' then return waiter end
if verdict == 'gone' then dequeue(id, waiter.fields, waiter.said) end
end
if verdict == 'passed' then passed = passed + 1 end
at, seen = at + 1, seen + 1
end
if passed == 0 then dropQueue() end
end
local mayHandOff = count == 0 or limitOf(leastMode) > 1
if not mayHandOff and queued == 'front' then
local id, place = unpack(redis.call('ZRANGE', KEYS[4], '0', '0', 'WITHSCORES'))
local waiter = id and readWaiter(id)
mayHandOff = id and tonumber(place) < tonumber(placeOf(waiter.sinceUs, waiter.priority, 0))
end
local nextWaiter = mayHandOff and nextLive()
local goesOn = nextWaiter and nextWaiter ~= true
if goesOn and count == 0 then
local first = nextWaiter
local hold, owner, process, mode, endMs, minFence = first.id, first.owner, first.process, first.mode, first.endMs, 0
goesOn = limitOf(mode) > 1 or tonumber(first.said[#first.said] or 0) > 1
dequeue(hold, first.fields, first.said, not goesOn and isLast and passed == 0 and not page[at + 1])
if queued and paid[process] then setState(process, paid[process], 'live') end
claims = 1
local last = tonumber(fence or 0)
local raised = math.max(nowUs, last + 1, minFence)
fence = raised == nowUs and time[1] .. string.sub('00000' .. time[2], -6) or string.format('%.0f', raised)
if claims == 1 then
redis.call(
'HSET', KEYS[1], 'fence', fence, 'ends', endMs, 'hold', hold, 'owner', owner, 'process', process, 'mode', mode, 'claims', '1'
)
else
redis.call(
'HSET', KEYS[1], 'format', '1', 'fence', fence, 'ends', endMs, 'hold', hold, 'owner', owner, 'process', process
)
if mode ~= 'write' then redis.call('HSET', KEYS[1], 'mode', mode) end
end
count, ends, onlyId, onlyOwner, onlyProcess, leastMode = 1, endMs, hold, owner, process, mode
if raised ~= nowUs or math.floor(last / 6e7) ~= math.floor(raised / 6e7) or endMs - nowMs > 4e4 then
local untilMs = endMs
local keepMs = math.max(untilMs, math.ceil((fence or 0) / 1000), buriedUntilMs or 0) - nowMs + recordTtlMs + 1e5
redis.call('PEXPIRE', KEYS[1], keepMs)
end
granted[1], taken[hold] = first, true
if not goesOn then nextWaiter = nil end
end
local function claim(waiter, family, number)
dequeue(waiter.id, waiter.fields, waiter.said)
waiter.hasNoFamily = family == 0 and waiter.said[2] == '1'
granted[#granted + 1], taken[waiter.id] = waiter, true
grantBeside(waiter, family, number)
end
local function within(owner)
local left, found, from = tonumber(redis.call('HGET', KEYS[5], 'c:' .. owner) or 0), {}, 0
while left > 0 and from < 4096 do
local ids = redis.call('ZRANGE', KEYS[4], from, from + 64 - 1)
if #ids == 0 then break end
for _, id in ipairs(ids) do
local waiter = readWaiter(id)
if isAncestor(owner, waiter.owner) then
found[#found + 1], left = waiter, left - 1
end
end
from = from + 64
end
return found
end
handOffWithin = function(owner)
local nested, left = within(owner), {}
local size = #nested > 0 and redis.call('ZCARD', KEYS[4])
for _, waiter in ipairs(nested) do
local family, _, number = familyOf(waiter.owner)
if admits(waiter.owner, waiter.mode, family) then
readFamily(waiter)
claim(waiter, family, number)
else
left[#left + 1] = waiter
end
end
for _, waiter in ipairs(left) do
local _, depth = familyOf(waiter.owner)
redis.call('ZADD', KEYS[4], 'LT', placeOf(waiter.sinceUs, waiter.priority, depth), waiter.id)
end
if #left > 0 then
redis.call('HSET', KEYS[1], 'queued', 'front')
queued = 'front'
end
if #nested > 0 then page, at, isLast, passed = {}, 1, size + #left == #nested, 0 end
end
while goesOn do
if taken[nextWaiter.id] then
if tonumber(nextWaiter.said[#nextWaiter.said] or 0) > 1 then handOffWithin(nextWaiter.owner) end
nextWaiter = limitOf(nextWaiter.mode) > 1 and nextLive()
if not nextWaiter or nextWaiter == true then break end
end
local family, _, number = familyOf(nextWaiter.owner)
goesOn = admits(nextWaiter.owner, nextWaiter.mode, family)
if not goesOn or #granted >= 256 then break end
if paid[nextWaiter.process] then setState(nextWaiter.process, paid[nextWaiter.process], 'live') end
claim(nextWaiter, family, number)
end
if goesOn and nextWaiter and nextWaiter ~= true then tell(nextWaiter.process, 'next ' .. nextWaiter.id) end
tellGranted(1)
for _, each in ipairs(lost) do tell(each.process, 'lost ' .. each.id) end
return done(1)`,
};

export const inspect: RedisScript = {
  name: 'inspect',
  sha1: '5ee2e173c84fd0faeca91561f740afe69f85c144',
  source: `local channels = ''
local time = redis.call('TIME')
local nowUs = time[1] * 1e6 + time[2]
local nowMs = math.floor(nowUs / 1000)
local format, fence, ends, queued, buriedUntilMs, onlyId = unpack(redis.call(
'HMGET', KEYS[1], 'format', 'fence', 'ends', 'queued', 'tombstones', 'hold'
))
if format and format ~= '1' then return redis.error_reply('RLFORMAT the lock is of another format') end
local count, claims, onlyOwner, onlyProcess, leastMode = 0, 0, nil, nil, nil
local several, isMixed, grants
local isStale = false
ends = tonumber(ends or 0)
if ends == 0 then
onlyId = nil
elseif onlyId then
count, onlyOwner, onlyProcess, leastMode, claims = 1, unpack(redis.call('HMGET', KEYS[1], 'owner', 'process', 'mode', 'claims'))
else
several, leastMode, claims, isMixed, grants = unpack(redis.call('HMGET', KEYS[1], 'holds', 'mode', 'claims', 'mixed', 'grants'))
count = tonumber(several or 1)
end
leastMode, claims = leastMode or 'write', tonumber(claims or 0)
local function done(reply)
if isStale then redis.call('DEL', KEYS[2], KEYS[3]) end
return reply
end
local function tombstoneOf(id)
local tombstone = tonumber(tonumber(buriedUntilMs or 0) > nowMs and redis.call('ZSCORE', KEYS[6], id) or 0)
return tombstone > nowMs and tombstone
end
local function limitOf(mode)
if mode == 'write' then return 1 end
return tonumber(mode) or math.huge
end
local function fieldsOf(prefix, owner, fields)
local at = string.find(owner, '/', 1, true)
while at do
fields[#fields + 1] = prefix .. string.sub(owner, 1, at - 1)
at = string.find(owner, '/', at + 1, true)
end
fields[#fields + 1] = prefix .. owner
return fields
end
local function isAncestor(ancestor, owner)
return ancestor == owner or #ancestor < #owner and string.sub(owner, 1, #ancestor + 1) == ancestor .. '/'
end
local function hasExpired()
return count > 0 and (ends <= nowMs or several and redis.call('ZCOUNT', KEYS[3], '-inf', nowMs) > 0)
end
local function readHold(id)
if several then return redis.call('HGET', KEYS[2], 'h:' .. id) end
if not id or id ~= onlyId then return nil end
return onlyProcess .. ' ' .. onlyOwner .. ' ' .. leastMode .. ' ' .. fence .. ' 1' .. (claims > 0 and ' claim' or '')
end
local function endOf(id)
return several and tonumber(redis.call('ZSCORE', KEYS[3], id) or ends) or ends
end
local function familyOf(owner, id)
if not several then
if count == 0 or not isAncestor(onlyOwner, owner) then return 0, 0, 0, readHold(id) end
return 1, #fieldsOf('', onlyOwner, {}), onlyOwner == owner and 1 or 0, readHold(id)
end
local found = redis.call('HMGET', KEYS[2], unpack(fieldsOf('o:', owner, {'h:' .. (id or '')})))
local sum, depth = 0, 0
for i = 2, #found do
if found[i] then sum, depth = sum + found[i], i - 1 end
end
return sum, depth, tonumber(found[#found] or 0), found[1]
end
local function othersOf(hold, family, number)
if hold.hasNoFamily then return 0, 0 end
local _
if not family then family, _, number = familyOf(hold.owner) end
if hold.mode ~= 'read' then return family - 1, number - 1 end
local equal = 0
if number > 1 and leastMode ~= 'read' then
for _, text in ipairs(redis.call('HVALS', KEYS[2])) do
local _, owner, mode = string.match(text, '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%d+)(.*)$')
if owner == hold.owner and mode ~= 'read' then equal = equal + 1 end
end
end
return family - 1, equal
end
local function listHolds(from, to, most)
local ids, list = count > 0 and {onlyId, ends} or {}, {}
if several then ids = redis.call('ZRANGE', KEYS[3], from, to, 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES') end
for i = 1, #ids, 2 do
local process, owner, mode, _, nr, claim = string.match(readHold(ids[i]) or '', '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%d+)(.*)$')
list[#list + 1] = process and {
id = ids[i], process = process, owner = owner, mode = mode, nr = tonumber(nr), isClaim = claim ~= '', endMs = ids[i + 1]
}
end
table.sort(list, function(a, b) return a.nr < b.nr end)
return list
end
local isCluster = string.find(channels, '{', 1, true)
local granted, taken, isDequeued = {}, {}, false
local tellGranted, handOffWithin
local function readWaiter(id)
local text = redis.call('HGET', KEYS[5], 'w:' .. id) or '- - write 0 0 0'
local process, owner, mode, claimMs, priority, sinceUs = string.match(text, '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%S+)%s(%d+)$')
return {
id = id, process = process, owner = owner, mode = mode, endMs = nowMs + claimMs, isClaim = true,
priority = priority, sinceUs = sinceUs,
}
end
local function readFamily(waiter)
waiter.fields = fieldsOf('c:', waiter.owner, {'p:' .. waiter.process})
waiter.said = redis.call('HMGET', KEYS[5], unpack(waiter.fields))
end
local function setState(name, known, state)
redis.call('HSET', KEYS[5], 'p:' .. name, (string.gsub(known, ' %a+', ' ' .. state, 1)))
end
local function placeOf(sinceUs, priority, front)
if priority == '0' and front == 0 then return sinceUs end
return sinceUs - priority * 1e7 - front * 1e14
end
local function dropQueue()
redis.call('DEL', KEYS[5])
redis.call('HDEL', KEYS[1], 'queued')
queued = false
end
local function dequeue(id, fields, said, isOnly)
local over = {'w:' .. id}
isDequeued = true
redis.call('ZREM', KEYS[4], id)
if isOnly then return dropQueue() end
for i = 2, #fields do
if tonumber(said[i] or 1) > 1 then
redis.call('HINCRBY', KEYS[5], fields[i], '-1')
else
over[#over + 1] = fields[i]
end
end
redis.call('HDEL', KEYS[5], unpack(over))
end
local function listenersOf(name)
local number, server = redis.pcall('PUBSUB', 'SHARDNUMSUB', KEYS[1] .. ':' .. name)[2], redis.pcall('CLUSTER', 'MYID')
return number or 0, type(server) == 'string' and ' ' .. server or ''
end
local held, waits = {}, {}
local function append(list, ...)
for _, part in ipairs({...}) do list[#list + 1] = part end
end
for _, each in ipairs(listHolds('(' .. nowMs, '+inf', 1000)) do
if tonumber(each.endMs) > nowMs then
append(held, each.id, each.owner, each.mode, each.process, fence, each.endMs, each.isClaim and 1 or 0)
end
end
for _, id in ipairs(ARGV[1] and {ARGV[1]} or queued and redis.call('ZRANGE', KEYS[4], 0, 1000 - 1) or {}) do
local each = readWaiter(id)
if queued and each.process ~= '-' then append(waits, id, each.owner, each.mode, each.process, each.priority, each.sinceUs) end
end
return {nowMs, held, waits}`,
};

export const release: RedisScript = {
  name: 'release',
  sha1: '9e5e840ab1dd5cbc13ebb65ee7894c9e4b8b18db',
  source: `local hold, tombstoneMs, announced, recordTtlMs = ARGV[1], ARGV[2], ARGV[4], nil
local time = redis.call('TIME')
local nowUs = time[1] * 1e6 + time[2]
local nowMs = math.floor(nowUs / 1000)
local format, fence, ends, queued, buriedUntilMs, onlyId = unpack(redis.call(
'HMGET', KEYS[1], 'format', 'fence', 'ends', 'queued', 'tombstones', 'hold'
))
if format and format ~= '1' then return redis.error_reply('RLFORMAT the lock is of another format') end
local count, claims, onlyOwner, onlyProcess, leastMode = 0, 0, nil, nil, nil
local isAlone, status = onlyId == hold and tonumber(ends or 0) > nowMs, nil
if isAlone then
if not queued then redis.call('HDEL', KEYS[1], 'ends','hold','owner','process','mode','claims') end
if not queued and tombstoneMs == '0' and not announced then return nowMs end
status, ends = 'released', 0
end
local process, owner, channels
process, owner, recordTtlMs, channels = string.match(ARGV[3], '^([^ ]+) ([^ ]+) (%d+) ([^ ]+)$')
local several, isMixed, grants
local isStale = false
ends = tonumber(ends or 0)
if ends == 0 then
onlyId = nil
elseif onlyId then
count, onlyOwner, onlyProcess, leastMode, claims = 1, unpack(redis.call('HMGET', KEYS[1], 'owner', 'process', 'mode', 'claims'))
else
several, leastMode, claims, isMixed, grants = unpack(redis.call('HMGET', KEYS[1], 'holds', 'mode', 'claims', 'mixed', 'grants'))
count = tonumber(several or 1)
end
leastMode, claims = leastMode or 'write', tonumber(claims or 0)
local function done(reply)
if isStale then redis.call('DEL', KEYS[2], KEYS[3]) end
return reply
end
local function tombstoneOf(id)
local tombstone = tonumber(tonumber(buriedUntilMs or 0) > nowMs and redis.call('ZSCORE', KEYS[6], id) or 0)
return tombstone > nowMs and tombstone
end
local function limitOf(mode)
if mode == 'write' then return 1 end
return tonumber(mode) or math.huge
end
local function fieldsOf(prefix, owner, fields)
local at = string.find(owner, '/', 1, true)
while at do
fields[#fields + 1] = prefix .. string.sub(owner, 1, at - 1)
at = string.find(owner, '/', at + 1, true)
end
fields[#fields + 1] = prefix .. owner
return fields
end
local function isAncestor(ancestor, owner)
return ancestor == owner or #ancestor < #owner and string.sub(owner, 1, #ancestor + 1) == ancestor .. '/'
end
local function hasExpired()
return count > 0 and (ends <= nowMs or several and redis.call('ZCOUNT', KEYS[3], '-inf', nowMs) > 0)
end
local function readHold(id)
if several then return redis.call('HGET', KEYS[2], 'h:' .. id) end
if not id or id ~= onlyId then return nil end
return onlyProcess .. ' ' .. onlyOwner .. ' ' .. leastMode .. ' ' .. fence .. ' 1' .. (claims > 0 and ' claim' or '')
end
local function endOf(id)
return several and tonumber(redis.call('ZSCORE', KEYS[3], id) or ends) or ends
end
local function familyOf(owner, id)
if not several then
if count == 0 or not isAncestor(onlyOwner, owner) then return 0, 0, 0, readHold(id) end
return 1, #fieldsOf('', onlyOwner, {}), onlyOwner == owner and 1 or 0, readHold(id)
end
local found = redis.call('HMGET', KEYS[2], unpack(fieldsOf('o:', owner, {'h:' .. (id or '')})))
local sum, depth = 0, 0
for i = 2, #found do
if found[i] then sum, depth = sum + found[i], i - 1 end
end
return sum, depth, tonumber(found[#found] or 0), found[1]
end
local function othersOf(hold, family, number)
if hold.hasNoFamily then return 0, 0 end
local _
if not family then family, _, number = familyOf(hold.owner) end
if hold.mode ~= 'read' then return family - 1, number - 1 end
local equal = 0
if number > 1 and leastMode ~= 'read' then
for _, text in ipairs(redis.call('HVALS', KEYS[2])) do
local _, owner, mode = string.match(text, '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%d+)(.*)$')
if owner == hold.owner and mode ~= 'read' then equal = equal + 1 end
end
end
return family - 1, equal
end
local function listHolds(from, to, most)
local ids, list = count > 0 and {onlyId, ends} or {}, {}
if several then ids = redis.call('ZRANGE', KEYS[3], from, to, 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES') end
for i = 1, #ids, 2 do
local process, owner, mode, _, nr, claim = string.match(readHold(ids[i]) or '', '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%d+)(.*)$')
list[#list + 1] = process and {
id = ids[i], process = process, owner = owner, mode = mode, nr = tonumber(nr), isClaim = claim ~= '', endMs = ids[i + 1]
}
end
table.sort(list, function(a, b) return a.nr < b.nr end)
return list
end
local isCluster = string.find(channels, '{', 1, true)
local granted, taken, isDequeued = {}, {}, false
local tellGranted, handOffWithin
local function readWaiter(id)
local text = redis.call('HGET', KEYS[5], 'w:' .. id) or '- - write 0 0 0'
local process, owner, mode, claimMs, priority, sinceUs = string.match(text, '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%S+)%s(%d+)$')
return {
id = id, process = process, owner = owner, mode = mode, endMs = nowMs + claimMs, isClaim = true,
priority = priority, sinceUs = sinceUs,
}
end
local function readFamily(waiter)
waiter.fields = fieldsOf('c:', waiter.owner, {'p:' .. waiter.process})
waiter.said = redis.call('HMGET', KEYS[5], unpack(waiter.fields))
end
local function setState(name, known, state)
redis.call('HSET', KEYS[5], 'p:' .. name, (string.gsub(known, ' %a+', ' ' .. state, 1)))
end
local function placeOf(sinceUs, priority, front)
if priority == '0' and front == 0 then return sinceUs end
return sinceUs - priority * 1e7 - front * 1e14
end
local function dropQueue()
redis.call('DEL', KEYS[5])
redis.call('HDEL', KEYS[1], 'queued')
queued = false
end
local function dequeue(id, fields, said, isOnly)
local over = {'w:' .. id}
isDequeued = true
redis.call('ZREM', KEYS[4], id)
if isOnly then return dropQueue() end
for i = 2, #fields do
if tonumber(said[i] or 1) > 1 then
redis.call('HINCRBY', KEYS[5], fields[i], '-1')
else
over[#over + 1] = fields[i]
end
end
redis.call('HDEL', KEYS[5], unpack(over))
end
local function listenersOf(name)
local number, server = redis.pcall('PUBSUB', 'SHARDNUMSUB', KEYS[1] .. ':' .. name)[2], redis.pcall('CLUSTER', 'MYID')
return number or 0, type(server) == 'string' and ' ' .. server or ''
end
if not status then
local function clear()
redis.call('HDEL', KEYS[1], 'ends','hold','owner','process','mode','claims', 'holds', 'grants', 'mixed')
isStale = isStale or several
count, ends, claims, several, isMixed, onlyId, grants, leastMode = 0, 0, 0, nil, nil, nil, nil, 'write'
end
local function findLeast()
local most = 0
leastMode = 'read'
for _, text in ipairs(redis.call('HVALS', KEYS[2])) do
local _, _, mode = string.match(text, '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%d+)(.*)$')
if mode then
most = math.max(most, limitOf(mode))
if limitOf(mode) < limitOf(leastMode) then leastMode = mode end
end
end
isMixed = most > limitOf(leastMode)
redis.call('HSET', KEYS[1], 'mode', leastMode)
if not isMixed then redis.call('HDEL', KEYS[1], 'mixed') end
end
local function remove(id, owner, isClaim, number)
if count == 1 then return clear() end
redis.call('ZREM', KEYS[3], id)
if (number or redis.call('HGET', KEYS[2], 'o:' .. owner)) == '1' then
redis.call('HDEL', KEYS[2], 'h:' .. id, 'o:' .. owner)
else
redis.call('HDEL', KEYS[2], 'h:' .. id)
redis.call('HINCRBY', KEYS[2], 'o:' .. owner, '-1')
end
local _, latest = unpack(redis.call('ZRANGE', KEYS[3], '-1', '-1', 'WITHSCORES'))
count, ends = count - 1, tonumber(latest or ends)
redis.call('HSET', KEYS[1], 'holds', count, 'ends', ends)
if isClaim then
claims = claims - 1
redis.call('HSET', KEYS[1], 'claims', claims)
end
if isMixed then findLeast() end
end
local function dropExpired()
if not hasExpired() then return {} end
local ended = listHolds('-inf', nowMs, count)
if #ended > 0 and ends <= nowMs then clear() end
for _, hold in ipairs(ended) do
if count > 0 then remove(hold.id, hold.owner, hold.isClaim) end
local known = hold.isClaim and queued and redis.call('HGET', KEYS[5], 'p:' .. hold.process)
if known then setState(hold.process, known, 'suspended') end
end
return ended
end
local wasHeld = false
for _, each in ipairs(dropExpired()) do wasHeld = wasHeld or each.id == hold end
local held, number = not several and readHold(hold), nil
if several then held, number = unpack(redis.call('HMGET', KEYS[2], 'h:' .. hold, 'o:' .. owner)) end
local isWaiting = queued and not held and redis.call('HEXISTS', KEYS[5], 'w:' .. hold) == 1
status = held and 'released' or wasHeld and 'expired' or isWaiting and 'cancelled' or 'absent'
local tombstone = status == 'absent' and tombstoneOf(hold)
if tombstone then return done({tombstone % 1 > 0 and 'released' or status, nowMs}) end
if held then remove(hold, owner, string.find(held, ' claim$'), number) end
if isWaiting then
local waiter = {owner = owner, process = process}
readFamily(waiter)
dequeue(hold, waiter.fields, waiter.said, redis.call('ZCARD', KEYS[4]) == 1)
end
end
if tombstoneMs ~= '0' then
local goneMs, untilMs = nowMs + tombstoneMs, ends
redis.call('ZREMRANGEBYSCORE', KEYS[6], '-inf', nowMs)
redis.call('ZADD', KEYS[6], goneMs + (status == 'released' and 0.5 or 0), hold)
buriedUntilMs = math.max(goneMs, buriedUntilMs or 0)
redis.call('HSET', KEYS[1], 'format', '1', 'tombstones', buriedUntilMs)
redis.call('PEXPIRE', KEYS[6], buriedUntilMs - nowMs)
local keepMs = math.max(untilMs, math.ceil((fence or 0) / 1000), buriedUntilMs or 0) - nowMs + recordTtlMs + 1e5
redis.call('PEXPIRE', KEYS[1], keepMs)
end
if queued then
local function tell(name, message)
local heard = isCluster and tonumber(redis.pcall('SPUBLISH', KEYS[1] .. ':' .. name, message))
if not heard or heard == 0 then redis.call('PUBLISH', channels .. name, message) end
end
tellGranted = function(from)
for i = from, #granted do
local waiter = granted[i]
if waiter.process ~= process then
tell(waiter.process, table.concat({'granted', waiter.id, fence, waiter.endMs, othersOf(waiter)}, ' '))
end
end
end
local page, at, isLast, passed, seen = {}, 1, false, 0, 0
local verdicts, paid = {}, {}
local function judge(name, known)
local liveUntilMs, state, mark = string.match(known or '0 live', '^(%d+)%s(%a+)(.*)$')
if tonumber(liveUntilMs) <= nowMs then return 'gone' end
if state == 'owed' then paid[name] = known end
if name == process or state == 'owed' then return 'live' end
if state == 'suspended' then return 'passed' end
local isDeaf
if isCluster then
local number, server = listenersOf(name)
isDeaf = mark ~= '' and number == 0 and mark == server
else
isDeaf = redis.call('PUBSUB', 'NUMSUB', channels .. name)[2] == 0
end
if not isDeaf then return 'live' end
redis.call('HDEL', KEYS[1], '')
setState(name, known, 'suspended')
return 'passed'
end
local function nextLive()
while true do
if not page[at] and not isLast then
local size = seen == 0 and 1 or 64
page = seen == 0 and redis.call('ZRANGE', KEYS[4], '0', '1') or redis.call('ZRANGE', KEYS[4], passed, passed + size)
at = 1
isLast, page[size + 1] = not page[size + 1], nil
end
local id = page[at]
if not id then break end
if seen >= 4096 then return true end
local waiter = not taken[id] and readWaiter(id)
local verdict = waiter and verdicts[waiter.process]
if waiter and verdict ~= 'passed' then
readFamily(waiter)
verdict = verdict or judge(waiter.process, waiter.said[1])
verdicts[waiter.process] = verdict
if verdict == 'live' then return waiter end
if verdict == 'gone' then dequeue(id, waiter.fields, waiter.said) end
end
if verdict == 'passed' then passed = passed + 1 end
at, seen = at + 1, seen + 1
end
if passed == 0 then dropQueue() end
end
local mayHandOff = count == 0 or limitOf(leastMode) > 1
if not mayHandOff and queued == 'front' then
local id, place = unpack(redis.call('ZRANGE', KEYS[4], '0', '0', 'WITHSCORES'))
local waiter = id and readWaiter(id)
mayHandOff = id and tonumber(place) < tonumber(placeOf(waiter.sinceUs, waiter.priority, 0))
end
local nextWaiter = mayHandOff and nextLive()
local goesOn = nextWaiter and nextWaiter ~= true
if goesOn and count == 0 then
local first = nextWaiter
local hold, owner, process, mode, endMs, minFence = first.id, first.owner, first.process, first.mode, first.endMs, 0
goesOn = limitOf(mode) > 1 or tonumber(first.said[#first.said] or 0) > 1
dequeue(hold, first.fields, first.said, not goesOn and isLast and passed == 0 and not page[at + 1])
if queued and paid[process] then setState(process, paid[process], 'live') end
claims = 1
local last = tonumber(fence or 0)
local raised = math.max(nowUs, last + 1, minFence)
fence = raised == nowUs and time[1] .. string.sub('00000' .. time[2], -6) or string.format('%.0f', raised)
if claims == 1 then
redis.call(
'HSET', KEYS[1], 'fence', fence, 'ends', endMs, 'hold', hold, 'owner', owner, 'process', process, 'mode', mode, 'claims', '1'
)
else
redis.call(
'HSET', KEYS[1], 'format', '1', 'fence', fence, 'ends', endMs, 'hold', hold, 'owner', owner, 'process', process
)
if mode ~= 'write' then redis.call('HSET', KEYS[1], 'mode', mode) end
end
count, ends, onlyId, onlyOwner, onlyProcess, leastMode = 1, endMs, hold, owner, process, mode
if raised ~= nowUs or math.floor(last / 6e7) ~= math.floor(raised / 6e7) or endMs - nowMs > 4e4 then
local untilMs = endMs
local keepMs = math.max(untilMs, math.ceil((fence or 0) / 1000), buriedUntilMs or 0) - nowMs + recordTtlMs + 1e5
redis.call('PEXPIRE', KEYS[1], keepMs)
end
granted[1], taken[hold] = first, true
if not goesOn then nextWaiter = nil end
end
if goesOn then
local function branchesBeside(owner)
local others, above, number = {}, {}, 0
for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do
local other = string.match(field, '^o:(.*)$')
if other and not isAncestor(other, owner) then
others[#others + 1] = other
for _, ancestor in ipairs(fieldsOf('', other, {})) do above[ancestor] = (above[ancestor] or 0) + 1 end
end
end
for _, other in ipairs(others) do
if above[other] == 1 then number = number + 1 end
end
return number
end
local function admits(owner, mode, family)
local outside, most = count - family, math.min(limitOf(leastMode), limitOf(mode))
if outside == 0 or outside < most then return true end
return most > 1 and branchesBeside(owner) < most
end
local function sharesFence(hold, family)
local limit = limitOf(hold.mode)
if hold.fence or hold.mode == 'read' then return true end
if family == 0 or limitOf(leastMode) > limit then return false end
if limit == 1 or not isMixed then return true end
for _, text in ipairs(redis.call('HVALS', KEYS[2])) do
local _, other, mode = string.match(text, '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%d+)(.*)$')
if other and isAncestor(other, hold.owner) and limitOf(mode) <= limit then return true end
end
return false
end
local function addBeside(hold, number)
grants = (grants or 0) + 1
local text = table.concat({hold.process, hold.owner, hold.mode, hold.fence or fence, grants, hold.isClaim and 'claim' or nil}, ' ')
redis.call('HSET', KEYS[2], 'h:' .. hold.id, text, 'o:' .. hold.owner, number)
redis.call('ZADD', KEYS[3], hold.endMs, hold.id)
end
local function moveBeside()
local fields, ids = isStale and redis.call('HKEYS', KEYS[2]) or {}, isStale and redis.call('ZRANGE', KEYS[3], 0, -1) or {}
addBeside({id = onlyId, process = onlyProcess, owner = onlyOwner, mode = leastMode, isClaim = claims > 0, endMs = ends}, 1)
for _, field in ipairs(fields) do
if field ~= 'h:' .. onlyId and field ~= 'o:' .. onlyOwner then redis.call('HDEL', KEYS[2], field) end
end
for _, id in ipairs(ids) do
if id ~= onlyId then redis.call('ZREM', KEYS[3], id) end
end
redis.call('HDEL', KEYS[1], 'hold', 'owner', 'process')
several, isStale = true, false
end
local function grantBeside(hold, family, number)
local wanted, most = limitOf(hold.mode), limitOf(leastMode)
local isKept = several and math.floor(hold.endMs / 6e4) <= math.floor(ends / 6e4)
if not several then moveBeside() end
if not sharesFence(hold, family) then
local raised = math.max(nowUs, fence + 1, hold.minFence or 0)
fence, isKept = string.format('%.0f', raised), isKept and raised == nowUs
end
count, ends = count + 1, math.max(ends, hold.endMs)
addBeside(hold, number + 1)
redis.call('HSET', KEYS[1], 'fence', fence, 'ends', ends, 'holds', count, 'grants', grants)
if hold.isClaim then
claims = claims + 1
redis.call('HSET', KEYS[1], 'claims', claims)
end
if wanted ~= most then
isMixed = true
redis.call('HSET', KEYS[1], 'mixed', 1)
end
if wanted < most then
leastMode = hold.mode
redis.call('HSET', KEYS[1], 'mode', leastMode)
end
if isKept then return end
local untilMs = ends
local keepMs = math.max(untilMs, math.ceil((fence or 0) / 1000), buriedUntilMs or 0) - nowMs + recordTtlMs + 1e5
redis.call('PEXPIRE', KEYS[1], keepMs)
redis.call('PEXPIRE', KEYS[2], keepMs)
redis.call('PEXPIRE', KEYS[3], keepMs)
end
local function claim(waiter, family, number)
dequeue(waiter.id, waiter.fields, waiter.said)
waiter.hasNoFamily = family == 0 and waiter.said[2] == '1'
granted[#granted + 1], taken[waiter.id] = waiter, true
grantBeside(waiter, family, number)
end
local function within(owner)
local left, found, from = tonumber(redis.call('HGET', KEYS[5], 'c:' .. owner) or 0), {}, 0
while left > 0 and from < 4096 do
local ids = redis.call('ZRANGE', KEYS[4], from, from + 64 - 1)
if #ids == 0 then break end
for _, id in ipairs(ids) do
local waiter = readWaiter(id)
if isAncestor(owner, waiter.owner) then
found[#found + 1], left = waiter, left - 1
end
end
from = from + 64
end
return found
end
handOffWithin = function(owner)
local nested, left = within(owner), {}
local size = #nested > 0 and redis.call('ZCARD', KEYS[4])
for _, waiter in ipairs(nested) do
local family, _, number = familyOf(waiter.owner)
if admits(waiter.owner, waiter.mode, family) then
readFamily(waiter)
claim(waiter, family, number)
else
left[#left + 1] = waiter
end
end
for _, waiter in ipairs(left) do
local _, depth = familyOf(waiter.owner)
redis.call('ZADD', KEYS[4], 'LT', placeOf(waiter.sinceUs, waiter.priority, depth), waiter.id)
end
if #left > 0 then
redis.call('HSET', KEYS[1], 'queued', 'front')
queued = 'front'
end
if #nested > 0 then page, at, isLast, passed = {}, 1, size + #left == #nested, 0 end
end
while goesOn do
if taken[nextWaiter.id] then
if tonumber(nextWaiter.said[#nextWaiter.said] or 0) > 1 then handOffWithin(nextWaiter.owner) end
nextWaiter = limitOf(nextWaiter.mode) > 1 and nextLive()
if not nextWaiter or nextWaiter == true then break end
end
local family, _, number = familyOf(nextWaiter.owner)
goesOn = admits(nextWaiter.owner, nextWaiter.mode, family)
if not goesOn or #granted >= 256 then break end
if paid[nextWaiter.process] then setState(nextWaiter.process, paid[nextWaiter.process], 'live') end
claim(nextWaiter, family, number)
end
if goesOn and nextWaiter and nextWaiter ~= true then tell(nextWaiter.process, 'next ' .. nextWaiter.id) end
end
tellGranted(1)
if isAlone and count == 0 then redis.call('HDEL', KEYS[1], 'ends','hold','owner','process','mode','claims') end
end
if announced and status ~= 'absent' and count == 0 then
redis.call('PUBLISH', channels .. 'freed', 'freed ' .. announced)
end
local reply, isPoll = {status, nowMs}, false
if #granted > 0 then
local function append(claim)
for _, each in ipairs({claim.id, fence, claim.endMs, othersOf(claim)}) do reply[#reply + 1] = each end
end
for _, waiter in ipairs(granted) do
if waiter.process == process and waiter.id ~= hold then append(waiter) end
end
if isPoll and claims > 0 then
for _, other in ipairs(listHolds(nowMs, '+inf', 64)) do
if other.isClaim and other.process == process and other.id ~= hold and not taken[other.id] then append(other) end
end
end
end
return done(reply)`,
};

export const renew: RedisScript = {
  name: 'renew',
  sha1: '8c160d6bf436740f11296654700bfaad7e87ec5c',
  source: `local hold, leaseMs, named, recordTtlMs = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local time = redis.call('TIME')
local nowUs = time[1] * 1e6 + time[2]
local nowMs = math.floor(nowUs / 1000)
local format, fence, ends, queued, buriedUntilMs, onlyId = unpack(redis.call(
'HMGET', KEYS[1], 'format', 'fence', 'ends', 'queued', 'tombstones', 'hold'
))
if format and format ~= '1' then return redis.error_reply('RLFORMAT the lock is of another format') end
local count, claims, onlyOwner, onlyProcess, leastMode = 0, 0, nil, nil, nil
local held = ends and not onlyId and redis.call('HGET', KEYS[2], 'h:' .. hold)
if onlyId ~= hold and not held then return {'lost', nowMs} end
local _, _, _, heldFence, _, claim = string.match(held or '', '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%d+)(.*)$')
local endMs = tonumber(held and redis.call('ZSCORE', KEYS[3], hold) or ends)
if endMs <= nowMs or named < tonumber(heldFence or fence) or named > tonumber(fence) then return {'lost', nowMs} end
endMs = math.max(endMs, nowMs + leaseMs)
ends = math.max(endMs, tonumber(ends))
local untilMs = ends
local keepMs = math.max(untilMs, math.ceil((fence or 0) / 1000), buriedUntilMs or 0) - nowMs + recordTtlMs + 1e5
redis.call('PEXPIRE', KEYS[1], keepMs)
redis.call('HSET', KEYS[1], 'ends', ends)
if not held then
redis.call('HDEL', KEYS[1], 'claims')
return {'renewed', nowMs, endMs}
end
redis.call('PEXPIRE', KEYS[2], keepMs)
redis.call('PEXPIRE', KEYS[3], keepMs)
redis.call('ZADD', KEYS[3], endMs, hold)
if claim ~= '' then
redis.call('HSET', KEYS[2], 'h:' .. hold, string.sub(held, 1, -1 - #claim))
redis.call('HINCRBY', KEYS[1], 'claims', '-1')
end
return {'renewed', nowMs, endMs}`,
};

export const transfer: RedisScript = {
  name: 'transfer',
  sha1: 'dbe53c14cc1a06c04be070fa0c7f3ea0300381e1',
  source: `local process, owner, hold, mode, leaseMs, recordTtlMs, channels, before, tombstoneMs = unpack(ARGV)
local time = redis.call('TIME')
local nowUs = time[1] * 1e6 + time[2]
local nowMs = math.floor(nowUs / 1000)
local format, fence, ends, queued, buriedUntilMs, onlyId = unpack(redis.call(
'HMGET', KEYS[1], 'format', 'fence', 'ends', 'queued', 'tombstones', 'hold'
))
if format and format ~= '1' then return redis.error_reply('RLFORMAT the lock is of another format') end
local count, claims, onlyOwner, onlyProcess, leastMode = 0, 0, nil, nil, nil
local several, isMixed, grants
local isStale = false
ends = tonumber(ends or 0)
if ends == 0 then
onlyId = nil
elseif onlyId then
count, onlyOwner, onlyProcess, leastMode, claims = 1, unpack(redis.call('HMGET', KEYS[1], 'owner', 'process', 'mode', 'claims'))
else
several, leastMode, claims, isMixed, grants = unpack(redis.call('HMGET', KEYS[1], 'holds', 'mode', 'claims', 'mixed', 'grants'))
count = tonumber(several or 1)
end
leastMode, claims = leastMode or 'write', tonumber(claims or 0)
local function done(reply)
if isStale then redis.call('DEL', KEYS[2], KEYS[3]) end
return reply
end
local function tombstoneOf(id)
local tombstone = tonumber(tonumber(buriedUntilMs or 0) > nowMs and redis.call('ZSCORE', KEYS[6], id) or 0)
return tombstone > nowMs and tombstone
end
local function limitOf(mode)
if mode == 'write' then return 1 end
return tonumber(mode) or math.huge
end
local function fieldsOf(prefix, owner, fields)
local at = string.find(owner, '/', 1, true)
while at do
fields[#fields + 1] = prefix .. string.sub(owner, 1, at - 1)
at = string.find(owner, '/', at + 1, true)
end
fields[#fields + 1] = prefix .. owner
return fields
end
local function isAncestor(ancestor, owner)
return ancestor == owner or #ancestor < #owner and string.sub(owner, 1, #ancestor + 1) == ancestor .. '/'
end
local function hasExpired()
return count > 0 and (ends <= nowMs or several and redis.call('ZCOUNT', KEYS[3], '-inf', nowMs) > 0)
end
local function readHold(id)
if several then return redis.call('HGET', KEYS[2], 'h:' .. id) end
if not id or id ~= onlyId then return nil end
return onlyProcess .. ' ' .. onlyOwner .. ' ' .. leastMode .. ' ' .. fence .. ' 1' .. (claims > 0 and ' claim' or '')
end
local function endOf(id)
return several and tonumber(redis.call('ZSCORE', KEYS[3], id) or ends) or ends
end
local function familyOf(owner, id)
if not several then
if count == 0 or not isAncestor(onlyOwner, owner) then return 0, 0, 0, readHold(id) end
return 1, #fieldsOf('', onlyOwner, {}), onlyOwner == owner and 1 or 0, readHold(id)
end
local found = redis.call('HMGET', KEYS[2], unpack(fieldsOf('o:', owner, {'h:' .. (id or '')})))
local sum, depth = 0, 0
for i = 2, #found do
if found[i] then sum, depth = sum + found[i], i - 1 end
end
return sum, depth, tonumber(found[#found] or 0), found[1]
end
local function othersOf(hold, family, number)
if hold.hasNoFamily then return 0, 0 end
local _
if not family then family, _, number = familyOf(hold.owner) end
if hold.mode ~= 'read' then return family - 1, number - 1 end
local equal = 0
if number > 1 and leastMode ~= 'read' then
for _, text in ipairs(redis.call('HVALS', KEYS[2])) do
local _, owner, mode = string.match(text, '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%d+)(.*)$')
if owner == hold.owner and mode ~= 'read' then equal = equal + 1 end
end
end
return family - 1, equal
end
local function listHolds(from, to, most)
local ids, list = count > 0 and {onlyId, ends} or {}, {}
if several then ids = redis.call('ZRANGE', KEYS[3], from, to, 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES') end
for i = 1, #ids, 2 do
local process, owner, mode, _, nr, claim = string.match(readHold(ids[i]) or '', '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%d+)(.*)$')
list[#list + 1] = process and {
id = ids[i], process = process, owner = owner, mode = mode, nr = tonumber(nr), isClaim = claim ~= '', endMs = ids[i + 1]
}
end
table.sort(list, function(a, b) return a.nr < b.nr end)
return list
end
local isCluster = string.find(channels, '{', 1, true)
local granted, taken, isDequeued = {}, {}, false
local tellGranted, handOffWithin
local function readWaiter(id)
local text = redis.call('HGET', KEYS[5], 'w:' .. id) or '- - write 0 0 0'
local process, owner, mode, claimMs, priority, sinceUs = string.match(text, '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%S+)%s(%d+)$')
return {
id = id, process = process, owner = owner, mode = mode, endMs = nowMs + claimMs, isClaim = true,
priority = priority, sinceUs = sinceUs,
}
end
local function readFamily(waiter)
waiter.fields = fieldsOf('c:', waiter.owner, {'p:' .. waiter.process})
waiter.said = redis.call('HMGET', KEYS[5], unpack(waiter.fields))
end
local function setState(name, known, state)
redis.call('HSET', KEYS[5], 'p:' .. name, (string.gsub(known, ' %a+', ' ' .. state, 1)))
end
local function placeOf(sinceUs, priority, front)
if priority == '0' and front == 0 then return sinceUs end
return sinceUs - priority * 1e7 - front * 1e14
end
local function dropQueue()
redis.call('DEL', KEYS[5])
redis.call('HDEL', KEYS[1], 'queued')
queued = false
end
local function dequeue(id, fields, said, isOnly)
local over = {'w:' .. id}
isDequeued = true
redis.call('ZREM', KEYS[4], id)
if isOnly then return dropQueue() end
for i = 2, #fields do
if tonumber(said[i] or 1) > 1 then
redis.call('HINCRBY', KEYS[5], fields[i], '-1')
else
over[#over + 1] = fields[i]
end
end
redis.call('HDEL', KEYS[5], unpack(over))
end
local function listenersOf(name)
local number, server = redis.pcall('PUBSUB', 'SHARDNUMSUB', KEYS[1] .. ':' .. name)[2], redis.pcall('CLUSTER', 'MYID')
return number or 0, type(server) == 'string' and ' ' .. server or ''
end
local function clear()
redis.call('HDEL', KEYS[1], 'ends','hold','owner','process','mode','claims', 'holds', 'grants', 'mixed')
isStale = isStale or several
count, ends, claims, several, isMixed, onlyId, grants, leastMode = 0, 0, 0, nil, nil, nil, nil, 'write'
end
local function findLeast()
local most = 0
leastMode = 'read'
for _, text in ipairs(redis.call('HVALS', KEYS[2])) do
local _, _, mode = string.match(text, '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%d+)(.*)$')
if mode then
most = math.max(most, limitOf(mode))
if limitOf(mode) < limitOf(leastMode) then leastMode = mode end
end
end
isMixed = most > limitOf(leastMode)
redis.call('HSET', KEYS[1], 'mode', leastMode)
if not isMixed then redis.call('HDEL', KEYS[1], 'mixed') end
end
local function remove(id, owner, isClaim, number)
if count == 1 then return clear() end
redis.call('ZREM', KEYS[3], id)
if (number or redis.call('HGET', KEYS[2], 'o:' .. owner)) == '1' then
redis.call('HDEL', KEYS[2], 'h:' .. id, 'o:' .. owner)
else
redis.call('HDEL', KEYS[2], 'h:' .. id)
redis.call('HINCRBY', KEYS[2], 'o:' .. owner, '-1')
end
local _, latest = unpack(redis.call('ZRANGE', KEYS[3], '-1', '-1', 'WITHSCORES'))
count, ends = count - 1, tonumber(latest or ends)
redis.call('HSET', KEYS[1], 'holds', count, 'ends', ends)
if isClaim then
claims = claims - 1
redis.call('HSET', KEYS[1], 'claims', claims)
end
if isMixed then findLeast() end
end
local function dropExpired()
if not hasExpired() then return {} end
local ended = listHolds('-inf', nowMs, count)
if #ended > 0 and ends <= nowMs then clear() end
for _, hold in ipairs(ended) do
if count > 0 then remove(hold.id, hold.owner, hold.isClaim) end
local known = hold.isClaim and queued and redis.call('HGET', KEYS[5], 'p:' .. hold.process)
if known then setState(hold.process, known, 'suspended') end
end
return ended
end
dropExpired()
if readHold(hold) then return done({'granted', nowMs, fence, endOf(hold)}) end
local text, endMs = readHold(before), endOf(before)
if not text or tombstoneOf(hold) then return done({'lost', nowMs}) end
local _, oldOwner, _, oldFence, _, claim = string.match(text, '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%d+)(.*)$')
local isInherited = isAncestor(owner, oldOwner)
local function isShared()
if count == 1 or limitOf(leastMode) == math.huge then return false end
if familyOf(oldOwner) > 1 then return true end
for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do
local other = string.match(field, '^o:(.*)$')
if other and other ~= oldOwner and isAncestor(oldOwner, other) then return true end
end
return false
end
if not isInherited and isShared() then return done({'shared', nowMs}) end
redis.call('HDEL', KEYS[1], '')
endMs = isInherited and math.max(endMs, nowMs + leaseMs) or nowMs + leaseMs
if not isInherited then remove(before, oldOwner, claim ~= '') end
local function branchesBeside(owner)
local others, above, number = {}, {}, 0
for _, field in ipairs(redis.call('HKEYS', KEYS[2])) do
local other = string.match(field, '^o:(.*)$')
if other and not isAncestor(other, owner) then
others[#others + 1] = other
for _, ancestor in ipairs(fieldsOf('', other, {})) do above[ancestor] = (above[ancestor] or 0) + 1 end
end
end
for _, other in ipairs(others) do
if above[other] == 1 then number = number + 1 end
end
return number
end
local function admits(owner, mode, family)
local outside, most = count - family, math.min(limitOf(leastMode), limitOf(mode))
if outside == 0 or outside < most then return true end
return most > 1 and branchesBeside(owner) < most
end
local function sharesFence(hold, family)
local limit = limitOf(hold.mode)
if hold.fence or hold.mode == 'read' then return true end
if family == 0 or limitOf(leastMode) > limit then return false end
if limit == 1 or not isMixed then return true end
for _, text in ipairs(redis.call('HVALS', KEYS[2])) do
local _, other, mode = string.match(text, '^(%S+)%s(%S+)%s(%S+)%s(%d+)%s(%d+)(.*)$')
if other and isAncestor(other, hold.owner) and limitOf(mode) <= limit then return true end
end
return false
end
local function addBeside(hold, number)
grants = (grants or 0) + 1
local text = table.concat({hold.process, hold.owner, hold.mode, hold.fence or fence, grants, hold.isClaim and 'claim' or nil}, ' ')
redis.call('HSET', KEYS[2], 'h:' .. hold.id, text, 'o:' .. hold.owner, number)
redis.call('ZADD', KEYS[3], hold.endMs, hold.id)
end
local function moveBeside()
local fields, ids = isStale and redis.call('HKEYS', KEYS[2]) or {}, isStale and redis.call('ZRANGE', KEYS[3], 0, -1) or {}
addBeside({id = onlyId, process = onlyProcess, owner = onlyOwner, mode = leastMode, isClaim = claims > 0, endMs = ends}, 1)
for _, field in ipairs(fields) do
if field ~= 'h:' .. onlyId and field ~= 'o:' .. onlyOwner then redis.call('HDEL', KEYS[2], field) end
end
for _, id in ipairs(ids) do
if id ~= onlyId then redis.call('ZREM', KEYS[3], id) end
end
redis.call('HDEL', KEYS[1], 'hold', 'owner', 'process')
several, isStale = true, false
end
local function grantBeside(hold, family, number)
local wanted, most = limitOf(hold.mode), limitOf(leastMode)
local isKept = several and math.floor(hold.endMs / 6e4) <= math.floor(ends / 6e4)
if not several then moveBeside() end
if not sharesFence(hold, family) then
local raised = math.max(nowUs, fence + 1, hold.minFence or 0)
fence, isKept = string.format('%.0f', raised), isKept and raised == nowUs
end
count, ends = count + 1, math.max(ends, hold.endMs)
addBeside(hold, number + 1)
redis.call('HSET', KEYS[1], 'fence', fence, 'ends', ends, 'holds', count, 'grants', grants)
if hold.isClaim then
claims = claims + 1
redis.call('HSET', KEYS[1], 'claims', claims)
end
if wanted ~= most then
isMixed = true
redis.call('HSET', KEYS[1], 'mixed', 1)
end
if wanted < most then
leastMode = hold.mode
redis.call('HSET', KEYS[1], 'mode', leastMode)
end
if isKept then return end
local untilMs = ends
local keepMs = math.max(untilMs, math.ceil((fence or 0) / 1000), buriedUntilMs or 0) - nowMs + recordTtlMs + 1e5
redis.call('PEXPIRE', KEYS[1], keepMs)
redis.call('PEXPIRE', KEYS[2], keepMs)
redis.call('PEXPIRE', KEYS[3], keepMs)
end
if count > 0 then
local own = {id = hold, process = process, owner = owner, mode = mode, endMs = endMs, fence = isInherited and oldFence or nil}
local family, _, ofOwner = familyOf(owner)
grantBeside(own, family, ofOwner)
else
local minFence = 0
local last = tonumber(fence or 0)
local raised = math.max(nowUs, last + 1, minFence)
fence = raised == nowUs and time[1] .. string.sub('00000' .. time[2], -6) or string.format('%.0f', raised)
if claims == 1 then
redis.call(
'HSET', KEYS[1], 'fence', fence, 'ends', endMs, 'hold', hold, 'owner', owner, 'process', process, 'mode', mode, 'claims', '1'
)
else
redis.call(
'HSET', KEYS[1], 'format', '1', 'fence', fence, 'ends', endMs, 'hold', hold, 'owner', owner, 'process', process
)
if mode ~= 'write' then redis.call('HSET', KEYS[1], 'mode', mode) end
end
count, ends, onlyId, onlyOwner, onlyProcess, leastMode = 1, endMs, hold, owner, process, mode
if raised ~= nowUs or math.floor(last / 6e7) ~= math.floor(raised / 6e7) or endMs - nowMs > 4e4 then
local untilMs = endMs
local keepMs = math.max(untilMs, math.ceil((fence or 0) / 1000), buriedUntilMs or 0) - nowMs + recordTtlMs + 1e5
redis.call('PEXPIRE', KEYS[1], keepMs)
end
end
if isInherited then remove(before, oldOwner, claim ~= '') end
do
local hold, status = before, 'released'
if tombstoneMs ~= '0' then
local goneMs, untilMs = nowMs + tombstoneMs, ends
redis.call('ZREMRANGEBYSCORE', KEYS[6], '-inf', nowMs)
redis.call('ZADD', KEYS[6], goneMs + (status == 'released' and 0.5 or 0), hold)
buriedUntilMs = math.max(goneMs, buriedUntilMs or 0)
redis.call('HSET', KEYS[1], 'format', '1', 'tombstones', buriedUntilMs)
redis.call('PEXPIRE', KEYS[6], buriedUntilMs - nowMs)
local keepMs = math.max(untilMs, math.ceil((fence or 0) / 1000), buriedUntilMs or 0) - nowMs + recordTtlMs + 1e5
redis.call('PEXPIRE', KEYS[1], keepMs)
end
end
if queued then
process = nil
local function tell(name, message)
local heard = isCluster and tonumber(redis.pcall('SPUBLISH', KEYS[1] .. ':' .. name, message))
if not heard or heard == 0 then redis.call('PUBLISH', channels .. name, message) end
end
tellGranted = function(from)
for i = from, #granted do
local waiter = granted[i]
if waiter.process ~= process then
tell(waiter.process, table.concat({'granted', waiter.id, fence, waiter.endMs, othersOf(waiter)}, ' '))
end
end
end
local page, at, isLast, passed, seen = {}, 1, false, 0, 0
local verdicts, paid = {}, {}
local function judge(name, known)
local liveUntilMs, state, mark = string.match(known or '0 live', '^(%d+)%s(%a+)(.*)$')
if tonumber(liveUntilMs) <= nowMs then return 'gone' end
if state == 'owed' then paid[name] = known end
if name == process or state == 'owed' then return 'live' end
if state == 'suspended' then return 'passed' end
local isDeaf
if isCluster then
local number, server = listenersOf(name)
isDeaf = mark ~= '' and number == 0 and mark == server
else
isDeaf = redis.call('PUBSUB', 'NUMSUB', channels .. name)[2] == 0
end
if not isDeaf then return 'live' end
redis.call('HDEL', KEYS[1], '')
setState(name, known, 'suspended')
return 'passed'
end
local function nextLive()
while true do
if not page[at] and not isLast then
local size = seen == 0 and 1 or 64
page = seen == 0 and redis.call('ZRANGE', KEYS[4], '0', '1') or redis.call('ZRANGE', KEYS[4], passed, passed + size)
at = 1
isLast, page[size + 1] = not page[size + 1], nil
end
local id = page[at]
if not id then break end
if seen >= 4096 then return true end
local waiter = not taken[id] and readWaiter(id)
local verdict = waiter and verdicts[waiter.process]
if waiter and verdict ~= 'passed' then
readFamily(waiter)
verdict = verdict or judge(waiter.process, waiter.said[1])
verdicts[waiter.process] = verdict
if verdict == 'live' then return waiter end
if verdict == 'gone' then dequeue(id, waiter.fields, waiter.said) end
end
if verdict == 'passed' then passed = passed + 1 end
at, seen = at + 1, seen + 1
end
if passed == 0 then dropQueue() end
end
local mayHandOff = count == 0 or limitOf(leastMode) > 1
if not mayHandOff and queued == 'front' then
local id, place = unpack(redis.call('ZRANGE', KEYS[4], '0', '0', 'WITHSCORES'))
local waiter = id and readWaiter(id)
mayHandOff = id and tonumber(place) < tonumber(placeOf(waiter.sinceUs, waiter.priority, 0))
end
local nextWaiter = mayHandOff and nextLive()
local goesOn = nextWaiter and nextWaiter ~= true
if goesOn and count == 0 then
local first = nextWaiter
local hold, owner, process, mode, endMs, minFence = first.id, first.owner, first.process, first.mode, first.endMs, 0
goesOn = limitOf(mode) > 1 or tonumber(first.said[#first.said] or 0) > 1
dequeue(hold, first.fields, first.said, not goesOn and isLast and passed == 0 and not page[at + 1])
if queued and paid[process] then setState(process, paid[process], 'live') end
claims = 1
local last = tonumber(fence or 0)
local raised = math.max(nowUs, last + 1, minFence)
fence = raised == nowUs and time[1] .. string.sub('00000' .. time[2], -6) or string.format('%.0f', raised)
if claims == 1 then
redis.call(
'HSET', KEYS[1], 'fence', fence, 'ends', endMs, 'hold', hold, 'owner', owner, 'process', process, 'mode', mode, 'claims', '1'
)
else
redis.call(
'HSET', KEYS[1], 'format', '1', 'fence', fence, 'ends', endMs, 'hold', hold, 'owner', owner, 'process', process
)
if mode ~= 'write' then redis.call('HSET', KEYS[1], 'mode', mode) end
end
count, ends, onlyId, onlyOwner, onlyProcess, leastMode = 1, endMs, hold, owner, process, mode
if raised ~= nowUs or math.floor(last / 6e7) ~= math.floor(raised / 6e7) or endMs - nowMs > 4e4 then
local untilMs = endMs
local keepMs = math.max(untilMs, math.ceil((fence or 0) / 1000), buriedUntilMs or 0) - nowMs + recordTtlMs + 1e5
redis.call('PEXPIRE', KEYS[1], keepMs)
end
granted[1], taken[hold] = first, true
if not goesOn then nextWaiter = nil end
end
local function claim(waiter, family, number)
dequeue(waiter.id, waiter.fields, waiter.said)
waiter.hasNoFamily = family == 0 and waiter.said[2] == '1'
granted[#granted + 1], taken[waiter.id] = waiter, true
grantBeside(waiter, family, number)
end
local function within(owner)
local left, found, from = tonumber(redis.call('HGET', KEYS[5], 'c:' .. owner) or 0), {}, 0
while left > 0 and from < 4096 do
local ids = redis.call('ZRANGE', KEYS[4], from, from + 64 - 1)
if #ids == 0 then break end
for _, id in ipairs(ids) do
local waiter = readWaiter(id)
if isAncestor(owner, waiter.owner) then
found[#found + 1], left = waiter, left - 1
end
end
from = from + 64
end
return found
end
handOffWithin = function(owner)
local nested, left = within(owner), {}
local size = #nested > 0 and redis.call('ZCARD', KEYS[4])
for _, waiter in ipairs(nested) do
local family, _, number = familyOf(waiter.owner)
if admits(waiter.owner, waiter.mode, family) then
readFamily(waiter)
claim(waiter, family, number)
else
left[#left + 1] = waiter
end
end
for _, waiter in ipairs(left) do
local _, depth = familyOf(waiter.owner)
redis.call('ZADD', KEYS[4], 'LT', placeOf(waiter.sinceUs, waiter.priority, depth), waiter.id)
end
if #left > 0 then
redis.call('HSET', KEYS[1], 'queued', 'front')
queued = 'front'
end
if #nested > 0 then page, at, isLast, passed = {}, 1, size + #left == #nested, 0 end
end
while goesOn do
if taken[nextWaiter.id] then
if tonumber(nextWaiter.said[#nextWaiter.said] or 0) > 1 then handOffWithin(nextWaiter.owner) end
nextWaiter = limitOf(nextWaiter.mode) > 1 and nextLive()
if not nextWaiter or nextWaiter == true then break end
end
local family, _, number = familyOf(nextWaiter.owner)
goesOn = admits(nextWaiter.owner, nextWaiter.mode, family)
if not goesOn or #granted >= 256 then break end
if paid[nextWaiter.process] then setState(nextWaiter.process, paid[nextWaiter.process], 'live') end
claim(nextWaiter, family, number)
end
if goesOn and nextWaiter and nextWaiter ~= true then tell(nextWaiter.process, 'next ' .. nextWaiter.id) end
handOffWithin(owner)
tellGranted(1)
end
return done({'granted', nowMs, fence, endMs})`,
};
