-- Appends claims of the calling process to `reply`: those that this call made, and of a poll the other open ones that lapse
-- first; hold, fence and end of each.
for _, waiter in ipairs(granted) do
  if waiter.process == process and waiter.id ~= hold then
    for _, part in ipairs({waiter.id, fence, waiter.endMs}) do reply[#reply + 1] = part end
  end
end
if isPoll and claims > 0 then
  for _, other in ipairs(listHolds(nowMs, '+inf', CLAIMS_LIMIT)) do
    if other.isClaim and other.process == process and other.id ~= hold and not taken[other.id] then
      for _, part in ipairs({other.id, fence, other.endMs}) do reply[#reply + 1] = part end
    end
  end
end
