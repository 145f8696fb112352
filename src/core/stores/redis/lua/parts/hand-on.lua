-- Sends a message to a process, after every write. In a cluster the message stays in the shard if the process listens there,
-- and goes to all servers if not.
local function tell(name, message)
  local heard = isCluster and tonumber(redis.pcall('SPUBLISH', record .. ':' .. name, message))
  if not heard or heard == 0 then redis.call('PUBLISH', channels .. name, message) end
end

-- Grants the next live waiter what the holds admit, with every other waiter of its owner; after a reader, goes on up to the
-- next writer. Each gets a claim. Writes the record in any case. The calling process finds its claims among the holds; the
-- others are told after the last write. Returns whether a live waiter is left that the holds do not admit.
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
  until first.mode == 'w' or #granted >= GRANT_LIMIT
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
