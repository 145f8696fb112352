local leaseMs = tonumber(string.sub(amount, 3, 14))
local minFence = tonumber(ARGV[3] or 0)

local function grantOf(hold)
  return withClaims({'granted', nowMs, last, hold.ends, hold.isClaim and 1 or 0, countOf(owner) - 1})
end

-- Returns the grant that this hold id has, if it has one.
local function repeatGrant()
  local hold = findHold()
  if not hold then return nil end
  if #holds + readers == 1 and last < minFence then
    last = minFence
    writeRecord()
  end
  return grantOf(hold)
end

-- Grants a lock that is free or shared, if no live waiter is before the caller; or to an owner that has it already. Returns
-- the grant, or nil.
local function enter(place, isBlocked)
  if isBlocked and countOf(owner) == 0 or not admits(owner, mode) then return nil end
  if place then dequeue(ownMember, owner) end
  local hold = {names = names, ends = nowMs + leaseMs, mode = mode}
  addHold(hold, owner, minFence)
  if place then sweepQueue() end
  writeRecord()
  return grantOf(hold)
end
