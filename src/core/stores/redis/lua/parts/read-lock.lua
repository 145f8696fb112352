-- Reads the lock. Sets `text`, its record, or false; and `isThin`: the lock is a stream, and `text` the record that says the same.
-- Needs `time`.
local text, isThin = redis.pcall('GET', KEYS[1]), false

-- Returns the record of a lock that is held by the entry of a stream.
local function recordOf(id, names, leaseMs)
  local ms, number = string.match(id, '^(%d+)-(%d+)$')
  -- The clock may have been set back.
  local ends = math.min(ms, time[1] * 1000 + math.floor(time[2] / 1000)) + leaseMs
  return string.format('%.0f--\nw%.0f %s', ms * FENCES_PER_MS + number, ends, names)
end

if text and text.err then
  if not string.find(text.err, 'WRONGTYPE', 1, true) then return text end
  -- Only the first entry can be a hold. The owner of another one was never told so, and asks again by script.
  local entry = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
  text, isThin = entry and recordOf(entry[1], entry[2][1], entry[2][2]), true
end
