-- Only readers hold, and nobody waits: one of several leaves, or the last one, if it came beside others.
if text and flag ~= '2' and tonumber(ms) <= RECORD_TTL_MS and not ARGV[3] then
  local waitingFlag, rememberingFlag, _, kind = string.byte(text, WAITING_COLUMN, KIND_COLUMN)
  --@include quick/only-readers
  -- As parts/remember.lua does it; a record that has room if it forgets something is left to the general path.
  local isFull = ms ~= '0' and #text - rest >= RELEASES_ROOM
  if isShared and isFull then
    local second, us, forMs = string.match(text, '^\n#%S+ %S+ %S+ %a(%d+)%.(%d+) (%d+)', rest)
    isShared = flag == '0' and second * 1000 + math.floor(us / 1000) + forMs > atMs
  end
  local isOwn = isInRecord and string.sub(text, line + 16, rest - 1) == ARGV[1]
  local owner, id = string.match(ARGV[1], '^%S+ (%S+) (%S+)')
  if isOwn then
    line = rest
  elseif isShared then
    local hold, count = ':h' .. ARGV[1], ':r' .. owner
    local known = redis.call('ZMSCORE', KEYS[2], hold, count)
    isOwn = known[1] and known[2] == '1' and redis.call('ZREM', KEYS[2], hold, count) == 2
    readers = readers - 1
  end
  if isShared and isOwn then
    local nowUs = time[1] .. string.sub('00000' .. time[2], -6)
    if isRemembering then
      redis.call('ZREMRANGEBYSCORE', KEYS[2], RELEASES_FROM, nowUs)
      isRemembering = redis.call('ZCOUNT', KEYS[2], nowUs, '+inf') > 0
    end
    if isFull then
      redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), ms + RECORD_TTL_MS))
      redis.call('ZADD', KEYS[2], string.format('%.0f', nowUs + ms * 1000), ':gr' .. id)
      if redis.call('PTTL', KEYS[2]) < tonumber(ms) then redis.call('PEXPIRE', KEYS[2], ms) end
      isRemembering, ms = true, '0'
    end
    afterHold = rest
    --@include quick/releases-with-own
    local head = string.sub(text, 1, FENCE_DIGITS) .. '-' .. (isRemembering and 'g' or '-') .. (readers > 0 and '\n!' or '')
    local left = head .. string.sub(text, line, rest - 1) .. releases
    if not redis.pcall('SET', KEYS[1], left, 'KEEPTTL').err then return atMs end
  end
end
