-- The only hold is a writer's of another owner, and its lease lasts: most calls on a key in demand end here. The caller is
-- queued, as parts/enqueue.lua does it. The queue may remember releases only if others wait already.
local isWritten = kind == WRITER_LINE or kind == WRITER_CLAIM_LINE
local isRemembering = rememberingFlag == FLAG_REMEMBERING
local mayJoin = waitingFlag == FLAG_WAITING and (isRemembering or rememberingFlag == FLAG_OFF)
if isWritten and (mayJoin or waitingFlag == FLAG_OFF and rememberingFlag == FLAG_OFF) then
  local atMs, endMs = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(string.sub(text, END_COLUMN, LAST_END_COLUMN))
  if string.byte(text, END_COLUMN) == RELATIVE_END then endMs = endMs + string.sub(text, 1, 13) end
  local process, owner, id = string.match(text, '^(%S+) (%S+) (%S+)', NAMES_COLUMN)
  local ownProcess, ownOwner = string.match(ARGV[1], '^(%S+) (%S+)')
  -- Without a priority.
  local flag, wants, maxWaiters, livenessMs = string.match(ARGV[2], '^(%d) (%a %d+ 0) (%d+) (%d+)', 16)
  local line = string.find(text, '\n', NAMES_COLUMN, true)
  local isOnly = not line or string.byte(text, line + 1) == RELEASE_LINE
  local isNew = isOnly and not string.find(text, ARGV[1], LINES_COLUMN, true)
  if isNew and isRemembering then
    local ownId = string.match(ARGV[1], '%S+$')
    local known = redis.call('ZMSCORE', KEYS[2], ':gr' .. ownId, ':ge' .. ownId, ':gc' .. ownId, ':ga' .. ownId)
    isNew = not (known[1] or known[2] or known[3] or known[4])
  end
  if isNew and flag == '1' and owner ~= ownOwner and endMs > atMs then
    local place = string.format('%.0f', time[1] * 1000000 + time[2] - PLACE_ZERO)
    local member, ownMark, ahead = ARGV[1] .. ' ' .. wants, ':o' .. ownOwner, nil
    -- At maxmemory a write that adds something is refused: then the general path returns the error.
    if waitingFlag == FLAG_WAITING then
      local known = redis.call('ZMSCORE', KEYS[2], ':p' .. ownProcess, ':s' .. ownProcess)
      local isLive = known[1] and not known[2] and known[1] - atMs >= tonumber(livenessMs)
      -- The queue has marks beside its waiters: those alone are counted if all members are too many.
      local most = tonumber(maxWaiters)
      if isLive and (redis.call('ZCARD', KEYS[2]) < most or redis.call('ZCOUNT', KEYS[2], '-inf', '(0') < most) then
        if redis.pcall('ZADD', KEYS[2], 'NX', place, member) == 1 then
          redis.call('ZINCRBY', KEYS[2], 1, ownMark)
          ahead = redis.call('ZCOUNT', KEYS[2], '-inf', '(' .. place)
        end
      end
    elseif tonumber(maxWaiters) > 0 and not string.find(ARGV[2], '{', 16, true) and redis.call('ZCARD', KEYS[2]) == 0 then
      -- The first waiter.
      local spanMs = math.ceil(livenessMs * 1.1)
      if redis.pcall('ZADD', KEYS[2], place, member, 1, ownMark, atMs + spanMs, ':p' .. ownProcess) == 3 then
        redis.call('PEXPIRE', KEYS[2], spanMs)
        local rest = line or #text + 1
        local alone = string.byte(wants) == WRITE_MODE and '\n?' .. member .. ' ' .. atMs + spanMs or ''
        local head = string.sub(text, 1, FENCE_DIGITS) .. 'q' .. string.sub(text, REMEMBERING_COLUMN, rest - 1)
        -- The record's time to live has time to spare.
        redis.call('SET', KEYS[1], head .. alone .. string.sub(text, rest), 'KEEPTTL')
        ahead = 0
      end
    end
    local hasClaim = kind == WRITER_CLAIM_LINE and process == ownProcess
    if ahead and not hasClaim then return {'queued', atMs, endMs, 1, ahead, 0} end
    if ahead then
      return {'queued', atMs, endMs, 1, ahead, 0, id, tonumber(string.sub(text, 1, FENCE_DIGITS)), endMs}
    end
  end
end
