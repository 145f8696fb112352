-- What the operations share: the lock's structures, and the hand-off. Needs `time`, the reply of TIME, and `text`, the
-- record or false.
--
-- ARGV[1] "<process> <owner> <hold id>", the names of who calls
-- ARGV[2] "<amount> <flag> <mode> <claim ms> <priority> <most waiters> <liveness ms> <channel prefix>", one argument,
--   since each costs the client more than its reading costs here; with a brace in the prefix, this is a cluster, where a
--   process may also listen to '<record>:<process>', in the lock's own slot
--
-- The record is a string:
--   16 digits  the last fence. All holds have it; where any is a writer's, all have one owner
--   q or -     q: somebody may wait
--   g, l or -  g: the queue may remember releases; l: a release below is remembered for more than an hour from now
--   and then lines, each behind a line feed, in this order:
--   !<end>     perhaps, where all holds have leases to read: none of theirs ends earlier
--   <kind><end> <names>
--              a hold. The kind is w, r, or s for a reader's whose fence rose after it was granted; W, R or S for a claim
--   ?<waiter> <live until>
--              perhaps, where nobody but one who wants to write waits. It goes with the next write of the record, and
--              before another is queued
--   #<names> <status><second>.<µs> <for ms>
--              a release that is remembered here, from that time on. The status is the first letter of what was answered
--   An end is 13 digits, or '+' and 12 digits: ms from the time on that the fence tells.
-- The queue is a zset, of member -> score:
--   <names> <mode> <claim ms> <priority>
--              a waiter -> its place: the time queued in µs, each degree of priority 10 s earlier, less 10^16. Doubles of
--              that size are exact, and negative: waiters come first
--   :p<process>           -> until when it is live; in a cluster the fraction says on which server it listened in this
--                            slot when that was written, 0 is none
--   :s<process>           -> 1 suspended: passed over until it polls; 2 owed: it polled since, and is granted the next
--                            time whether it is reachable or not
--   :o<owner>             -> how many of its waiters there are
--   :g<status><hold id>   -> until when this release is remembered, in µs
-- Times are ms of this server's clock, 13 digits, which survive tostring(); fences are µs and are written with %.0f.
-- Where bytes are compared: 33 is !, 35 #, 43 +, 45 -, 63 ?, 87 W, 103 g, 113 q, 114 r, 119 w.
local record, queue = KEYS[1], KEYS[2]
local names = ARGV[1]
local caller, owner, holdId = string.match(names, '^(%S+) (%S+) (%S+)$')
local amount, flag, wants, maxWaiters, livenessMs, channels = string.match(
  ARGV[2], '^(%S+) (%d) (%a %d+ %-?%d+) (%d+) (%d+) (%S+)$'
)
local mode, priority = string.match(wants, '^(%a) %d+ (%-?%d+)$')
-- All that is known of a waiter, as a member of the queue.
local ownMember = names .. ' ' .. wants
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local nowUs = time[1] * 1000000 + time[2]
-- A call looks at no more waiters than this; the next call goes on.
local scanLimit = 4096
local hourMs = 3600000
-- Where the scores of remembered releases begin; those of the marks are below.
local goneFrom = 1e15

local function digits(number)
  return string.format('%.0f', number)
end

local function unpackWaiter(member)
  local names, process, owner, id, mode, claim = string.match(member, '^((%S+) (%S+) (%S+)) (%a) (%d+)')
  return {
    names = names, id = id, owner = owner, process = process, mode = mode, claim = tonumber(claim), member = member
  }
end

-- The record: holds that expired are left out. Processes that let a claim lapse are suspended by the next write of it. There
-- may be a thousand readers: a line is cut by its columns, and its names are taken apart where they are asked for.
local holds, last, waiting, remembering, receipts = {}, 0, false, false, ''
-- Who waits alone, where the record names it.
local alone
local lapsed = {}
if text then
  local from = string.find(text, '\n#', 19, true) or #text + 1
  local at = 19
  while at < from do
    local next = string.find(text, '\n', at + 1, true) or from
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
  waiting, remembering = string.byte(text, 17) == 113, string.byte(text, 18) == 103
end

-- Whether the calling process did: where this is its poll, it is owed a turn in place of being suspended.
local hasLapsed = lapsed[caller]

-- Until when a release is remembered that the record has: "<second>.<µs> <for ms>".
local function untilMs(second, us, ms)
  return second * 1000 + math.floor(us / 1000) + ms
end

local function keepQueue(ms)
  if redis.call('PTTL', queue) < ms then redis.call('PEXPIRE', queue, ms) end
end

-- Only where it waits: else nothing would end the mark.
local function suspend(name)
  if redis.call('ZSCORE', queue, ':p' .. name) then redis.call('ZADD', queue, 1, ':s' .. name) end
end

-- At maxmemory, what grows is allowed only after another write. That one deletes nothing: in a cluster, on a server that a
-- slot moves away from, no key can be made that is not there, nor looked at.
local function allowGrowth()
  redis.call('PEXPIRE', record, hourMs)
end

-- The last fence outlives the last hold by an hour, so that it rises even where the clock is set back.
local function writeRecord()
  local latest = math.max(nowMs, math.ceil(last / 1000))
  if remembering then latest = math.max(latest, nowMs + redis.call('PTTL', queue)) end
  -- With fewer digits it is over within the hour that is added.
  local isLong = false
  for second, us, ms in string.gmatch(receipts .. '\n', '%a(%d+)%.(%d+) (%d%d%d%d%d%d%d+)\n') do
    local ends = untilMs(second, us, ms)
    latest, isLong = math.max(latest, ends), isLong or ends > nowMs + hourMs
  end
  local flags = (waiting and 'q' or '-') .. (remembering and 'g' or isLong and 'l' or '-')
  local parts = {string.format('%016.0f', last) .. flags, ''}
  local isShared, earliest = #holds > 1, math.huge
  for _, hold in ipairs(holds) do
    latest, earliest = math.max(latest, hold.ends), math.min(earliest, hold.ends)
    isShared = isShared and hold.mode == 'r' and not hold.isClaim
    local kind = hold.isClaim and string.upper(hold.mode) or hold.mode
    parts[#parts + 1] = '\n' .. kind .. hold.ends .. ' '
    parts[#parts + 1] = hold.names
  end
  parts[#parts + 1] = receipts
  if isShared then parts[2] = '\n!' .. earliest end
  allowGrowth()
  redis.call('SET', record, table.concat(parts), 'PX', latest - nowMs + hourMs)
  if not waiting then return end
  for name in pairs(lapsed) do suspend(name) end
end

-- What is left without a waiter: nothing, or what is remembered.
local function sweepQueue()
  local first = redis.call('ZRANGE', queue, 0, 0)[1]
  waiting = first ~= nil and string.sub(first, 1, 1) ~= ':'
  if waiting then return end
  if remembering then
    redis.call('ZREMRANGEBYSCORE', queue, 0, '(' .. digits(goneFrom))
  else
    redis.call('DEL', queue)
  end
end

-- Removes a queue entry; false where there is none.
local function dequeue(member, owner)
  if redis.call('ZREM', queue, member) == 0 then return false end
  if tonumber(redis.call('ZINCRBY', queue, -1, ':o' .. owner)) <= 0 then redis.call('ZREM', queue, ':o' .. owner) end
  return true
end

-- Whether the holds let one more of this owner and mode in: others only share as readers.
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

-- A writer has a fence that no other owner ever had: it rises where nobody holds, and where a writer joins readers. Those
-- know the one that they got.
local function raiseFence(mode, least)
  if #holds > 0 and (mode ~= 'w' or hasWriter()) then return end
  last = math.max(last + 1, nowUs, least or 0)
  for _, hold in ipairs(holds) do hold.mode = 's' end
end

local isCluster = string.find(channels, '{', 1, true)

-- How many connections of a process listen in the lock's slot; nil where the server, or the user, can't ask.
local function listenersOf(name)
  return redis.pcall('PUBSUB', 'SHARDNUMSUB', record .. ':' .. name)[2]
end

-- This server of the cluster, as a fraction.
local function serverMark()
  local id = redis.pcall('CLUSTER', 'MYID')
  return type(id) == 'string' and (tonumber(string.sub(id, 1, 6), 16) % 2047 + 1) / 2048 or 0
end

-- After every write. In a cluster it stays in the shard where the process listens there, and goes to all servers where not.
local function tell(name, message)
  local heard = isCluster and tonumber(redis.pcall('SPUBLISH', record .. ':' .. name, message))
  if not heard or heard == 0 then redis.call('PUBLISH', channels .. name, message) end
end

-- What its marks say of a process: 'live'; 'gone', so that its waiters go; 'passed' over, since it is suspended; or
-- 'unreachable', to be suspended.
local function judge(name, untilMs, state)
  if not untilMs or tonumber(untilMs) <= nowMs then return 'gone' end
  if name == caller then return 'live' end
  if state == '1' or lapsed[name] then return 'passed' end
  if state == '2' then return 'live' end
  if not isCluster then return redis.call('PUBSUB', 'NUMSUB', channels .. name)[2] > 0 and 'live' or 'unreachable' end
  -- Of who has yet to subscribe, or had subscribed on another server before the slot came here, nothing is known.
  local mark = untilMs % 1
  return mark > 0 and listenersOf(name) == 0 and mark == serverMark() and 'unreachable' or 'live'
end

-- How many waiters this call has looked at.
local seen = 0
-- The first waiter whose process is live. Processes are judged once a call, not once a waiter.
local function nextLive(verdicts, owed)
  local from, size = 0, 1
  while seen < scanLimit do
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

-- A waiter with every other waiter of its owner, who are granted with it.
local function withOwner(first)
  local all = {first}
  if redis.call('ZSCORE', queue, ':o' .. first.owner) == '1' then return all end
  for _, member in ipairs(redis.call('ZRANGE', queue, 0, scanLimit - 1)) do
    if string.sub(member, 1, 1) == ':' then break end
    local waiter = unpackWaiter(member)
    if waiter.owner == first.owner and waiter.id ~= first.id then all[#all + 1] = waiter end
  end
  return all
end

-- Grants the next live waiter what the holds admit, and every other waiter of its owner; after a reader, goes on up to
-- the next writer. Each gets a claim. Writes the record in any case. The calling process finds its claims among the holds;
-- others are told after the last write. Answers whether a live waiter is left whom the holds do not admit.
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

-- What is remembered of this hold id's release.
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

-- Appends the calling process's open claims, but for the hold that the reply is about.
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
