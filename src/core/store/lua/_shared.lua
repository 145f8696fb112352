-- What the operations share: the lock's structures, and the hand-off. Needs `time`, the reply of TIME.
--
-- ARGV[1] hold id   ARGV[2] "<owner> <process>"   ARGV[3] "<claim ms> <most waiters> <liveness ms> <channel prefix>"
-- record  string  "<last fence> <q, if somebody may wait, or ->", then a line a hold: "<hold id> <end> <kind> <owner>
--                 <process>", kind is claim or lease. All holds have one owner, and the last fence.
-- queue   zset    "<hold id> <owner> <process> <claim ms>" -> time queued, µs; the member is all that is known of a waiter
-- meta    zset    'p'<process> -> live until; 's'<process> -> 1 suspended, 2 owed; 'o'<owner> -> how many wait
-- Times are ms of this server's clock, 13 digits, which survive tostring(); fences are µs and are written with %.0f.
local record, queue, meta = KEYS[1], KEYS[2], KEYS[3]
local holdId, whose = ARGV[1], ARGV[2]
local owner, caller = string.match(whose, '^(%S+) (%S+)$')
local claimMs, maxWaiters, livenessMs, channels = string.match(ARGV[3], '^(%d+) (%d+) (%d+) (%S+)$')
-- All that is known of a waiter, as a member of the queue.
local ownMember = holdId .. ' ' .. whose .. ' ' .. claimMs
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local nowUs = time[1] * 1000000 + time[2]
-- A call looks at no more waiters than this; the next call goes on.
local scanLimit = 4096

local function digits(number)
  return string.format('%.0f', number)
end

local function unpackWaiter(member)
  local id, owner, process, claim = string.match(member, '^(%S+) (%S+) (%S+) (%d+)$')
  return {id = id, owner = owner, process = process, claim = tonumber(claim), member = member}
end

-- Only where it waits: else nothing would end the mark.
local function suspend(name)
  if redis.call('ZSCORE', meta, 'p' .. name) then redis.call('ZADD', meta, 1, 's' .. name) end
end

-- Other processes that let a claim lapse, found by reading the record; the next write of it suspends them.
local lapsed = {}

-- The holds of a record's text, the last fence, and whether somebody may wait. Holds that expired are left out.
local function readRecord(text)
  local holds = {}
  if not text or text == '' then return holds, 0, false end
  for id, ends, kind, owner, process in string.gmatch(text, '\n(%S+) (%d+) (%a+) (%S+) (%S+)') do
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

-- Deleted before it is set, so that it works at maxmemory. The last fence outlives the last hold by an hour, so that it
-- rises even where the clock is set back.
local function writeRecord(holds, last, waiting)
  local text = digits(last) .. (waiting and ' q' or ' -')
  local latest = math.max(nowMs, math.ceil(last / 1000))
  for _, hold in ipairs(holds) do
    latest = math.max(latest, hold.ends)
    text = text .. '\n' .. hold.id .. ' ' .. hold.ends .. ' ' .. hold.kind .. ' ' .. hold.owner .. ' ' .. hold.process
  end
  redis.call('DEL', record)
  redis.call('SET', record, text, 'PX', latest - nowMs + 3600000)
  for name in pairs(lapsed) do suspend(name) end
end

-- Removes a queue entry; false where there is none.
local function dequeue(member, owner)
  if redis.call('ZREM', queue, member) == 0 then return false end
  -- An empty queue's expiry is gone: what begins anew must set it anew.
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

-- The first waiter whose process is live. Processes are judged once a call, not once a waiter.
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

-- Who is granted with the first: every other waiter of its owner.
local function withOwner(first)
  local granted = {first}
  if first.isAlone then return granted end
  for _, member in ipairs(redis.call('ZRANGE', queue, 0, scanLimit - 1)) do
    local waiter = unpackWaiter(member)
    if waiter.owner == first.owner and waiter.id ~= first.id then granted[#granted + 1] = waiter end
  end
  return granted
end

-- Makes the next live waiter the holder, with every other waiter of its owner: each has a claim and the next fence.
-- Writes the record in any case. The calling process's claims are in the holds; others are told after the last write.
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

-- Appends the calling process's open claims, but for the hold that the reply is about.
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
