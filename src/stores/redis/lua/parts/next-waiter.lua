-- What is known of processes: they are judged once a call, not once a waiter.
local verdicts, owed = {}, {}

local function judgeOnce(name)
  if not verdicts[name] then
    local known = redis.call('ZMSCORE', queue, ':p' .. name, ':s' .. name)
    verdicts[name] = judge(name, known[1], known[2])
    owed[name] = tonumber(known[2]) == OWED_STATE and not lapsed[name]
  end
  return verdicts[name]
end

-- A page of the queue, and the place in it up to which it is done; how many waiters were read, and how many of them passed
-- over; the members that this call has granted since.
local page, at, seen, passed, taken = {}, 1, 0, 0, {}
-- Whether the search ended before the queue did, after very many waiters. Then it is not known whether a live one waits.
local isCut = false

-- Returns the first waiter whose process is live, and the same again until it is taken; nil if none is found.
local function nextLive()
  while true do
    if not page[at] then
      page, at = redis.call('ZRANGE', queue, passed, passed + (seen == 0 and 0 or PAGE_SIZE - 1)), 1
    end
    local member = page[at]
    if not member or string.sub(member, 1, 1) == ':' then return nil end
    isCut = seen >= SCAN_LIMIT
    if isCut then return nil end
    local waiter = not taken[member] and unpackWaiter(member)
    local verdict = waiter and judgeOnce(waiter.process)
    if verdict == 'live' then return waiter end
    at, seen = at + 1, seen + 1
    if verdict == 'gone' then dequeue(member, waiter.owner) elseif waiter then passed = passed + 1 end
  end
end

-- Returns a waiter with every other waiter of its owner: they are granted together.
local function withOwner(first)
  local all = {first}
  if redis.call('ZSCORE', queue, ':o' .. first.owner) == '1' then return all end
  for _, member in ipairs(redis.call('ZRANGE', queue, 0, SCAN_LIMIT - 1)) do
    if string.sub(member, 1, 1) == ':' then break end
    local waiter = unpackWaiter(member)
    if waiter.owner == first.owner and waiter.id ~= first.id then all[#all + 1] = waiter end
  end
  return all
end
