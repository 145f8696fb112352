-- At maxmemory, a write that needs memory is allowed only after another write. This one deletes nothing: in a cluster, on a
-- server that a slot moves away from, a key that is gone can't be made again, nor looked at.
local function allowGrowth()
  redis.call('PEXPIRE', record, RECORD_TTL_MS)
end

-- Writes the record, and suspends the processes that let a claim lapse. The last fence outlives the last hold, so that
-- it rises even if the clock is set back.
local function writeRecord()
  local latest = math.max(nowMs, math.ceil(last / 1000))
  if remembering or readers > 0 then latest = math.max(latest, nowMs + redis.call('PTTL', queue)) end
  local flags = (waiting and 'q' or '-') .. (remembering and 'g' or '-')
  local head = permits and (waiting or hasHolds()) and string.format('p%04d', permits) or ''
  local parts = {head .. string.format('%016.0f', last) .. flags, readers > 0 and '\n!' or ''}
  for _, hold in ipairs(holds) do
    latest = math.max(latest, hold.ends)
    local kind = hold.isClaim and string.upper(hold.mode) or hold.mode
    parts[#parts + 1] = '\n' .. kind .. hold.ends .. ' ' .. hold.names
  end
  parts[#parts + 1] = receipts
  allowGrowth()
  redis.call('SET', record, table.concat(parts), 'PX', latest - nowMs + RECORD_TTL_MS)
  if not waiting then return end
  for name in pairs(lapsed) do suspend(name) end
end
