-- At maxmemory, a write that needs memory is allowed only after another write. This one deletes nothing: in a cluster, on a
-- server that a slot moves away from, a key that is gone can't be made again, nor looked at.
local function allowGrowth()
  redis.call('PEXPIRE', record, HOUR_MS)
end

-- Writes the record, and suspends the processes that let a claim lapse. The last fence outlives the last hold by an hour, so
-- that it rises even if the clock is set back.
local function writeRecord()
  local latest = math.max(nowMs, math.ceil(last / 1000))
  if remembering then latest = math.max(latest, nowMs + redis.call('PTTL', queue)) end
  -- A time with fewer digits is over within the hour that is added.
  local isLong = false
  for second, us, ms in string.gmatch(receipts .. '\n', '%a(%d+)%.(%d+) (%d%d%d%d%d%d%d+)\n') do
    local ends = untilMs(second, us, ms)
    latest, isLong = math.max(latest, ends), isLong or ends > nowMs + HOUR_MS
  end
  local flags = (waiting and 'q' or '-') .. (remembering and 'g' or isLong and 'l' or '-')
  local parts = {string.format('%016.0f', last) .. flags, ''}
  local isShared, earliest = #holds > 1, math.huge
  for _, hold in ipairs(holds) do
    latest, earliest = math.max(latest, hold.ends), math.min(earliest, hold.ends)
    isShared = isShared and hold.mode == 'r' and not hold.isClaim
    local kind = hold.isClaim and string.upper(hold.mode) or hold.mode
    parts[#parts + 1] = '\n' .. kind .. hold.ends .. ' '
    parts[#parts + 1] = hold.names
  end
  parts[#parts + 1] = receipts
  if isShared then parts[2] = '\n!' .. earliest end
  allowGrowth()
  redis.call('SET', record, table.concat(parts), 'PX', latest - nowMs + HOUR_MS)
  if not waiting then return end
  for name in pairs(lapsed) do suspend(name) end
end
