-- Only readers hold, and nobody waits: another owner reads beside them, as parts/enter.lua does it.
if lineFeed and string.byte(ARGV[2]) ~= WRITE_MODE then
  --@include quick/only-readers
  local owner, id = string.match(ARGV[1], '^%S+ (%S+) (%S+)')
  local at = isShared and string.find(text, ' ' .. owner .. ' ', line, true)
  if isShared and not (at and at < rest) and not string.find(text, ARGV[1], LINES_COLUMN, true) then
    local leaseMs, hold, count = tonumber(string.sub(ARGV[2], 3, 14)), ':h' .. ARGV[1], ':r' .. owner
    -- Without its record, a lock knows of no waiter: the caller may still be queued.
    local waiter = ARGV[1] .. ' ' .. string.match(ARGV[2], '^%S+ %d (%a %d+ %-?%d+)')
    local known = redis.call('ZMSCORE', KEYS[2], count, waiter, ':gr' .. id, ':ge' .. id, ':gc' .. id, ':ga' .. id)
    local isNew = not (known[1] or known[2] or known[3] or known[4] or known[5] or known[6])
    -- At maxmemory it is refused: then the general path returns the error.
    if isNew and redis.pcall('ZADD', KEYS[2], READERS_FROM + atMs + leaseMs, hold, 1, count) == 2 then
      if redis.call('PTTL', KEYS[2]) < leaseMs then redis.call('PEXPIRE', KEYS[2], leaseMs) end
      local last = tonumber(string.sub(text, 1, FENCE_DIGITS))
      local keepMs = math.max(leaseMs, math.ceil(last / 1000) - atMs) + RECORD_TTL_MS
      keepMs = math.max(keepMs, redis.call('PTTL', KEYS[1]))
      if readers > 0 then
        redis.call('PEXPIRE', KEYS[1], keepMs)
      else
        local head = string.sub(text, 1, REMEMBERING_COLUMN)
        redis.call('SET', KEYS[1], head .. '\n!' .. string.sub(text, LINES_COLUMN), 'PX', keepMs)
      end
      return {'granted', atMs, last, atMs + leaseMs, 0, 0}
    end
  end
end
