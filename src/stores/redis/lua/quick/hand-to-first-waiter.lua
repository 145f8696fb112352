-- Hands the lock to the first waiter if that is a live writer and its owner's only waiter, as parts/hand-on.lua does it.
local isLast, isLive, first = true, liveMs and tonumber(liveMs) > atMs, nil
if not id then
  local page = redis.call('ZRANGE', KEYS[2], 0, 1)
  first = page[1] or ''
  isLast = not page[2] or string.sub(page[2], 1, 1) == ':'
  process, owner, id, claimMs = string.match(first, '^(%S+) (%S+) (%S+) w (%d+) ')
  local known = id and redis.call('ZMSCORE', KEYS[2], ':p' .. process, ':s' .. process, ':o' .. owner) or {}
  liveMs = known[1]
  isLive = liveMs and tonumber(liveMs) > atMs and not known[2] and known[3] == '1'
end
-- What is remembered in the queue is left to the general path when the last waiter goes.
isLive = isLive and not (isLast and isRemembering)
if isLive then
  local isOwn = string.sub(ARGV[1], 1, #process + 1) == process .. ' '
  local channel = not isOwn and string.match(ARGV[2], '(%S+)$') .. process
  -- As judge() and tell() do it; a process that can't be reached is left to the general path.
  local inSlot = channel and string.find(channel, '{', 1, true) and KEYS[1] .. ':' .. process
  local listeners
  if channel and not inSlot then
    listeners = redis.call('PUBSUB', 'NUMSUB', channel)[2]
  elseif inSlot and liveMs % 1 > 0 then
    listeners = redis.pcall('PUBSUB', 'SHARDNUMSUB', inSlot)[2]
  end
  if listeners ~= 0 then
    local ends = atMs + claimMs .. ''
    local fence = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))
    if text >= fence then fence = string.format('%.0f', string.sub(text, 1, FENCE_DIGITS) + 1) end
    local keepMs = 0
    if isRemembering then
      local nowUs = time[1] .. string.sub('00000' .. time[2], -6)
      redis.call('ZREMRANGEBYSCORE', KEYS[2], RELEASES_FROM, nowUs)
      isRemembering = redis.call('ZCOUNT', KEYS[2], nowUs, '+inf') > 0
      keepMs = redis.call('PTTL', KEYS[2])
    end
    if isLast then redis.call('DEL', KEYS[2]) else redis.call('ZREM', KEYS[2], first, ':o' .. owner) end
    local hold = '\nW' .. ends .. ' ' .. process .. ' ' .. owner .. ' ' .. id
    local record = fence .. (isLast and '-' or 'q') .. (isRemembering and 'g' or '-') .. hold .. releases
    if atMs + claimMs <= endMs then
      redis.call('SET', KEYS[1], record, 'KEEPTTL')
    else
      keepMs = math.max(keepMs, math.max(0, math.ceil(fence / 1000) - atMs) + claimMs)
      redis.call('SET', KEYS[1], record, 'PX', keepMs + RECORD_TTL_MS)
    end
    if isOwn then return {'released', atMs, id, fence, ends} end
    local message = 'granted ' .. id .. ' ' .. fence .. ' ' .. ends
    local heard = inSlot and tonumber(redis.pcall('SPUBLISH', inSlot, message))
    if not heard or heard == 0 then redis.call('PUBLISH', channel, message) end
    return atMs
  end
end
