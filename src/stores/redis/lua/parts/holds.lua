local function hasHolds()
  return #holds + readers > 0
end

local function hasWriter()
  for _, hold in ipairs(holds) do
    if hold.mode == 'w' then return true end
  end
  return false
end

-- How many holds an owner has.
local function countOf(owner)
  local count, middle = readersOf(owner), ' ' .. owner .. ' '
  for _, hold in ipairs(holds) do
    if string.find(hold.names, middle, 1, true) then count = count + 1 end
  end
  return count
end

-- How many owners hold. Only those with several holds are looked at.
local function countOwners()
  local count = #holds + readers
  for _, hold in ipairs(holds) do
    if readersOf(string.match(hold.names, '^%S+ (%S+)')) > 0 then count = count - 1 end
  end
  local several = redis.call('ZRANGE', queue, 2, '(' .. SUSPENDED_STATE, 'BYSCORE', 'WITHSCORES')
  for i = 1, #several, 2 do
    if string.sub(several[i], 1, 2) == ':r' then count = count - several[i + 1] + 1 end
  end
  return count
end

-- Whether the holds let in one more of this owner and mode. Different owners share a lock only as readers, and as far as there
-- are permits.
local function admits(owner, mode)
  if permits then return #holds + readers < permits or countOf(owner) > 0 or countOwners() < permits end
  local middle = ' ' .. owner .. ' '
  for _, hold in ipairs(holds) do
    if (mode == 'w' or hold.mode == 'w') and not string.find(hold.names, middle, 1, true) then return false end
  end
  return mode ~= 'w' or readersOf(owner) == readers
end

-- When the last of the leases ends.
local function freeAt()
  local latest = readers > 0 and lastReaderEnd() or nowMs
  for _, hold in ipairs(holds) do latest = math.max(latest, hold.ends) end
  return latest
end

local function findHold()
  for _, hold in ipairs(holds) do
    if hold.names == names then return hold end
  end
  return findReader(names)
end

-- Whether a hold of this owner and mode shares the fence of those that are there.
local function sharesFence(owner, mode)
  -- Without the record, the last fence is not known.
  if permits then return last > 0 and countOf(owner) > 0 end
  return hasHolds() and (mode ~= 'w' or hasWriter())
end

-- A writer gets a fence that no other owner ever had: it rises if nobody holds, and if a writer joins readers. Those may be
-- renewed with the fence that they got. It also rises if another owner gets a permit.
local function raiseFence(owner, mode, least)
  if sharesFence(owner, mode) then return end
  last = math.max(last + 1, nowUs, least or 0)
  if permits then return end
  for _, hold in ipairs(holds) do hold.mode = 's' end
  if readers == 0 then return end
  for _, hold in ipairs(readersIn(READERS_FROM)) do
    hold.mode = 's'
    writeReader(hold)
  end
end

-- Adds a hold that the others admit: to the record, or to the queue if it reads beside others.
local function addHold(hold, owner, least)
  raiseFence(owner, hold.mode, least)
  -- Later ones raise the fence, too.
  if permits then hold.mode = 's' end
  if hold.mode == 'w' or not hasHolds() then
    holds[#holds + 1] = hold
  else
    addReader(hold, owner)
  end
end
