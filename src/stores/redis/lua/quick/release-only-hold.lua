-- The caller has the only hold, its release is to be remembered for less than the record is, and nobody waits, or the first waiter is
-- a live writer: most calls end here.
local afterHold = NAMES_COLUMN + #ARGV[1]
local isOnly = text and string.find(text, ARGV[1], NAMES_COLUMN, true) == NAMES_COLUMN
local process, owner, id, claimMs, liveMs
if isOnly and #text >= afterHold then
  local newline, mark = string.byte(text, afterHold, afterHold + 1)
  isOnly = newline == LINE_FEED and (mark == RELEASE_LINE or mark == ALONE_LINE)
  -- The record names the only waiter: the queue need not be asked.
  if isOnly and mark == ALONE_LINE then
    process, owner, id, claimMs, liveMs, afterHold = string.match(
      text, '^(%S+) (%S+) (%S+) w (%d+) 0 (%d+)()', afterHold + 2
    )
    isOnly = afterHold ~= nil
  end
end
local ms, flag = string.match(ARGV[2], '^(%d+) (%d)')
if isOnly and #text - afterHold < RELEASES_ROOM and flag == '1' and tonumber(ms) <= RECORD_TTL_MS then
  local atMs, endMs = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(string.sub(text, END_COLUMN, LAST_END_COLUMN))
  if string.byte(text, END_COLUMN) == RELATIVE_END then endMs = endMs + string.sub(text, 1, 13) end
  --@include quick/releases-with-own
  local waitingFlag, rememberingFlag = string.byte(text, WAITING_COLUMN, REMEMBERING_COLUMN)
  local isRemembering = rememberingFlag == FLAG_REMEMBERING
  local isQuick = endMs > atMs and (isRemembering or rememberingFlag == FLAG_OFF)
  if isQuick and waitingFlag == FLAG_OFF and not isRemembering then
    -- The record's time to live has time to spare.
    if not redis.pcall('SET', KEYS[1], string.sub(text, 1, REMEMBERING_COLUMN) .. releases, 'KEEPTTL').err then
      if ARGV[3] then redis.call('PUBLISH', string.match(ARGV[2], '(%S+)$') .. 'freed', 'freed ' .. ARGV[3]) end
      return atMs
    end
  elseif isQuick and waitingFlag == FLAG_WAITING then
    --@include quick/hand-to-first-waiter
  end
end
