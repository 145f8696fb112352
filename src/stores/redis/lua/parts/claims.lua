-- Appends claims of the calling process to `reply`: those that this call made, and of a poll the other open ones that lapse
-- first; hold, fence and end of each.
local function append(id, endMs)
  local size = #reply
  reply[size + 1], reply[size + 2], reply[size + 3] = id, fence, endMs
end
for _, waiter in ipairs(granted) do
  if waiter.process == process and waiter.id ~= hold then
    append(waiter.id, waiter.endMs)
  end
end
if isPoll and claims > 0 then
  for _, other in ipairs(listHolds(nowMs, '+inf', CLAIMS_LIMIT)) do
    if other.isClaim and other.process == process and other.id ~= hold and not taken[other.id] then
      append(other.id, other.endMs)
    end
  end
end
