-- How many waiters this call has looked at.
local seen = 0

-- Returns the first waiter whose process is live. Processes are judged once a call, not once a waiter.
local function nextLive(verdicts, owed)
  local from, size = 0, 1
  while seen < SCAN_LIMIT do
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
