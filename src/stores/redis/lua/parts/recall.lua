local statuses = {r = 'released', e = 'expired', c = 'cancelled', a = 'absent'}

-- Returns what the release of the caller's hold id returned, if that is remembered.
local function recall()
  local at = string.find(receipts, '#' .. names .. ' ', 1, true)
  if at then
    local letter, second, us, ms = string.match(receipts, '^(%a)(%d+)%.(%d+) (%d+)', at + #names + 2)
    if untilMs(second, us, ms) > nowMs then return statuses[letter] end
  end
  if not remembering then return nil end
  local letters = {'r', 'e', 'c', 'a'}
  local known = redis.call('ZMSCORE', queue, ':gr' .. holdId, ':ge' .. holdId, ':gc' .. holdId, ':ga' .. holdId)
  for i, letter in ipairs(letters) do
    if known[i] and tonumber(known[i]) > nowUs then return statuses[letter] end
  end
  return nil
end
