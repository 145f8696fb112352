-- Removes the hold of the caller; returns 'released', or nil if it was not there.
local function remove()
  for i, hold in ipairs(holds) do
    if hold.names == names then
      table.remove(holds, i)
      return 'released'
    end
  end
  return removeReader(names, owner) and 'released' or nil
end

-- Removes the waiter of the caller. Returns what a release of a hold id without a hold is.
local function cancel()
  if dequeue(ownMember, owner) then
    sweepQueue()
    return 'cancelled'
  end
  local wasHeld = ended[names] or text and string.find(text .. '\n', ' ' .. names .. '\n', LINES_COLUMN, true)
  return wasHeld and 'expired' or 'absent'
end
