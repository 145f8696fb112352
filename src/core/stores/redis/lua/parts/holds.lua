local function hasHolds()
  return #holds + readers > 0
end

local function hasWriter()
  for _, hold in ipairs(holds) do
    if hold.mode == 'w' then return true end
  end
  return false
end

-- Whether the holds let in one more of this owner and mode. Different owners share a lock only as readers.
local function admits(owner, mode)
  local middle = ' ' .. owner .. ' '
  for _, hold in ipairs(holds) do
    if (mode == 'w' or hold.mode == 'w') and not string.find(hold.names, middle, 1, true) then return false end
  end
  return mode ~= 'w' or readersOf(owner) == readers
end

-- How many holds the caller's owner has.
local function countOwn()
  local count, middle = readersOf(owner), ' ' .. owner .. ' '
  for _, hold in ipairs(holds) do
    if string.find(hold.names, middle, 1, true) then count = count + 1 end
  end
  return count
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

-- A writer gets a fence that no other owner ever had: it rises if nobody holds, and if a writer joins readers. Those may be
-- renewed with the fence that they got.
local function raiseFence(mode, least)
  if hasHolds() and (mode ~= 'w' or hasWriter()) then return end
  last = math.max(last + 1, nowUs, least or 0)
  for _, hold in ipairs(holds) do hold.mode = 's' end
  if readers == 0 then return end
  for _, hold in ipairs(readersIn(READERS_FROM)) do
    hold.mode = 's'
    writeReader(hold)
  end
end

-- Adds a hold that the others admit: to the record, or to the queue if it reads beside others.
local function addHold(hold, owner, least)
  raiseFence(hold.mode, least)
  if hold.mode == 'w' or not hasHolds() then
    holds[#holds + 1] = hold
  else
    addReader(hold, owner)
  end
end
