-- The caller is one of several readers, and nobody waits, or the first waiter is a live writer: only its own line goes, since
-- there may be a thousand others.
--@include parts/own-line
afterHold = from and (string.find(text, '\n#', to, true) or #text + 1)
local forMs, flag = string.match(ARGV[2], '^(%d+) ([01])')
if from and (from > NAMES_COLUMN - 1 or to < afterHold - 1) and forMs and tonumber(forMs) <= HOUR_MS then
  local atMs = time[1] * 1000 + math.floor(time[2] / 1000)
  local nowUs = time[1] .. string.sub('00000' .. time[2], -6)
  local waitingFlag, rememberingFlag = string.byte(text, WAITING_COLUMN, REMEMBERING_COLUMN)
  local isRemembering = false
  if rememberingFlag == FLAG_REMEMBERING then
    redis.call('ZREMRANGEBYSCORE', KEYS[2], RELEASES_FROM, nowUs)
    isRemembering = redis.call('ZCOUNT', KEYS[2], nowUs, '+inf') > 0
  end
  local isKept = (rememberingFlag == FLAG_OFF or isRemembering)
    and tonumber(string.sub(text, END_COLUMN, LAST_END_COLUMN)) > atMs
  local others = string.sub(text, LINES_COLUMN, from - 1) .. string.sub(text, to + 1, afterHold - 1)
  if isKept and waitingFlag == FLAG_WAITING then
    --@include parts/writer-first
    isKept = isBarred
  end
  local releases, isFull = string.sub(text, afterHold), false
  if forMs ~= '0' then
    local caller = string.match(ARGV[1], '^%S+')
    if flag == '1' then
      releases = string.gsub(releases, '\n#(%S+)[^\n]*', function(process) return process == caller and '' or nil end)
    end
    isFull = #releases > RELEASES_ROOM
    if not isFull then
      releases = releases .. '\n#' .. ARGV[1] .. ' r' .. time[1] .. '.' .. time[2] .. ' ' .. forMs
    end
  end
  local flags = string.char(waitingFlag) .. ((isFull or isRemembering) and 'g' or '-')
  local record = string.sub(text, 1, FENCE_DIGITS) .. flags .. others .. releases
  if isKept and not redis.pcall('SET', KEYS[1], record, 'KEEPTTL').err then
    if isFull then
      redis.call('ZADD', KEYS[2], nowUs + forMs * 1000, ':gr' .. string.match(ARGV[1], '%S+$'))
      if redis.call('PTTL', KEYS[2]) < tonumber(forMs) then redis.call('PEXPIRE', KEYS[2], forMs) end
    end
    return atMs
  end
end
