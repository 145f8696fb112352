-- Nobody holds and nobody waits: most calls end here, before the rest is even defined. Fences are compared as text: they have
-- 16 digits.
local fence = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))
local waitingFlag, rememberingFlag, lineFeed, kind
if text then waitingFlag, rememberingFlag, lineFeed, kind = string.byte(text, WAITING_COLUMN, KIND_COLUMN) end
local isFree = not text
  or waitingFlag == FLAG_OFF and rememberingFlag == FLAG_OFF and (not lineFeed or kind == RELEASE_LINE) and text < fence
if isFree and not (lineFeed and string.find(text, ARGV[1], LINES_COLUMN, true)) and not (ARGV[3] and ARGV[3] > fence) then
  local releases = lineFeed and string.sub(text, LINES_COLUMN) or ''
  local hold = fence .. '--\n' .. string.sub(ARGV[2], 1, 15) .. ARGV[1] .. releases
  local isShort = string.find(ARGV[2], '+0000000', 2, true) == 2
  redis.call('SET', KEYS[1], hold, 'PX', isShort and 'SHORT_RECORD_TTL_MS' or string.sub(ARGV[2], 3, 14) + RECORD_TTL_MS)
  return fence
end
