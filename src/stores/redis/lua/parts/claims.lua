-- Appends claims of the calling process to `reply`: those that this call made, and of a poll the other open ones that lapse
-- first; hold, fence and end of each, how many other holds its family has, and how many of these its owner has.
local function append(claim)
  for _, each in ipairs({claim.id, fence, claim.endMs, beside(claim)}) do reply[#reply + 1] = each end
end
for _, waiter in ipairs(granted) do
  if waiter.process == process and waiter.id ~= hold then append(waiter) end
end
if isPoll and claims > 0 then
  for _, other in ipairs(listHolds(nowMs, '+inf', CLAIMS_LIMIT)) do
    if other.isClaim and other.process == process and other.id ~= hold and not taken[other.id] then append(other) end
  end
end
