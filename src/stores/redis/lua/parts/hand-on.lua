-- Sends a message to a process, after every write. In a cluster the message stays in the shard if the process listens there,
-- and goes to all servers if not.
local function tell(name, message)
  local heard = isCluster and tonumber(redis.pcall('SPUBLISH', record .. ':' .. name, message))
  if not heard or heard == 0 then redis.call('PUBLISH', channels .. name, message) end
end

-- The claims of this call.
local granted = {}

-- Grants the next live waiter what the holds admit, with every other waiter of its owner; after a reader, goes on up to one
-- that they do not admit. Each gets a claim. After many, the process of the next one is told to go on. Writes the record in any case.
-- The calling process finds its claims in the reply; the others are told after the last write. Returns whether a live waiter
-- is left.
local function handOn()
  local paid = {}
  local first
  repeat
    first = nextLive()
    if not first or #granted >= GRANT_LIMIT or not admits(first.owner, first.mode) then break end
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
