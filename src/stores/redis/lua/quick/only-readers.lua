-- Sets `isShared`: only readers hold, their leases last, none is a claim, and nobody waits. At most one of them is in the record:
-- its line begins at `line`, and the lines of releases at `rest`. `readers` are in the queue. Needs the first bytes of `text`.
local atMs = time[1] * 1000 + math.floor(time[2] / 1000)
local isRemembering = rememberingFlag == FLAG_REMEMBERING
local isShared = not permits and waitingFlag == FLAG_OFF and (isRemembering or rememberingFlag == FLAG_OFF)
local line, readers = LINES_COLUMN, 0
if isShared and kind == SHARED_LINE then
  line = line + 2
  kind = string.byte(text, line + 1)
  readers = redis.call('ZCOUNT', KEYS[2], READERS_FROM, '(' .. RELEASES_FROM)
  isShared = readers > 0 and redis.call('ZCOUNT', KEYS[2], READERS_FROM + atMs + 1, '(' .. CLAIMS_FROM) == readers
end
local rest, isInRecord = line, kind == READER_LINE or kind == RAISED_READER_LINE
if isShared and isInRecord then
  local endMs = tonumber(string.sub(text, line + 2, line + 14))
  if string.byte(text, line + 2) == RELATIVE_END then endMs = endMs + string.sub(text, 1, 13) end
  isShared = endMs > atMs
  rest = string.find(text, '\n', line + 16, true) or #text + 1
end
local mark = string.byte(text, rest + 1)
isShared = isShared and (isInRecord or readers > 0) and (not mark or mark == RELEASE_LINE)
