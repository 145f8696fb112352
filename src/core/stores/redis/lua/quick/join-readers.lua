-- Others read, none of their leases is over, and nobody waits: the caller's line is added in place, since there may be a
-- thousand. The queue is asked, too: it still has those who were queued when the record was deleted.
local isRead = kind == SHARED_LINE and (rememberingFlag == FLAG_OFF or rememberingFlag == FLAG_REMEMBERING)
local isOpen = isRead and waitingFlag == FLAG_OFF and string.byte(ARGV[2]) == READ_MODE
if isOpen and string.byte(redis.call('ZRANGE', KEYS[2], 0, 0)[1] or ':') == MARK_BYTE then
  local atMs, leaseMs = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(string.sub(ARGV[2], 3, 14))
  local earliest, ends = string.sub(text, END_COLUMN, LAST_END_COLUMN), atMs + leaseMs .. ''
  local over = string.find(text, '\n#', LAST_END_COLUMN + 1, true) or #text + 1
  local own = string.find(text, string.match(ARGV[1], ' %S+ '), LAST_END_COLUMN + 1, true)
  local isNew = not own or own > over and not string.find(text, ARGV[1], over, true)
  if isNew and rememberingFlag == FLAG_REMEMBERING then
    local id = string.match(ARGV[1], '%S+$')
    local known = redis.call('ZMSCORE', KEYS[2], ':gr' .. id, ':ge' .. id, ':gc' .. id, ':ga' .. id)
    isNew = not (known[1] or known[2] or known[3] or known[4])
  end
  if isNew and tonumber(earliest) > atMs then
    local rest = '\nr' .. ends .. ' ' .. ARGV[1] .. string.sub(text, over)
    if tonumber(redis.pcall('SETRANGE', KEYS[1], over - 1, rest)) then
      if ends < earliest then redis.call('SETRANGE', KEYS[1], END_COLUMN - 1, ends) end
      if redis.call('PTTL', KEYS[1]) < leaseMs + HOUR_MS then redis.call('PEXPIRE', KEYS[1], leaseMs + HOUR_MS) end
      return {'granted', atMs, tonumber(string.sub(text, 1, FENCE_DIGITS)), atMs + leaseMs, 0, 0}
    end
  end
end
