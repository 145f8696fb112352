-- Makes a record of a lock that is thin. Needs what parts/read-lock.lua sets.
if isThin then
  if not text then
    -- Nobody holds it. A new entry has a later id than all that were there.
    local ms, number = string.match(redis.call('XADD', KEYS[1], '*', '-', 0), '^(%d+)-(%d+)$')
    text = string.format('%.0f--', ms * FENCES_PER_MS + number)
  end
  local latest = math.max(time[1] * 1000 + math.floor(time[2] / 1000), math.ceil(string.sub(text, 1, FENCE_DIGITS) / 1000))
  if #text > LINES_COLUMN then latest = math.max(latest, tonumber(string.sub(text, END_COLUMN, LAST_END_COLUMN))) end
  redis.call('SET', KEYS[1], text, 'PX', latest - (time[1] * 1000 + math.floor(time[2] / 1000)) + RECORD_TTL_MS)
end
