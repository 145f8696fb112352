-- The record, without the holds that are over.
local holds, last, waiting, remembering, receipts = {}, 0, false, false, ''
-- The names of the only waiter, if the record has them.
local alone
-- Processes that let a claim lapse: the next write of the record suspends them.
local lapsed = {}
if text then
  local from = string.find(text, '\n#', LINES_COLUMN, true) or #text + 1
  local at = LINES_COLUMN
  while at < from do
    local next = string.find(text, '\n', at + 1, true) or from
    local kind, ends = string.byte(text, at + 1), string.sub(text, at + 2, at + 14)
    if kind == ALONE_LINE then
      alone = string.match(text, '^%S+ %S+ %S+', at + 2)
    elseif kind ~= SHARED_LINE then
      local isClaim = kind < LOWERCASE_FROM
      ends = string.byte(ends) == RELATIVE_END and ends + string.sub(text, 1, 13) or tonumber(ends)
      if ends > nowMs then
        local mode = string.char(isClaim and kind + 32 or kind)
        holds[#holds + 1] = {names = string.sub(text, at + 16, next - 1), ends = ends, mode = mode, isClaim = isClaim}
      elseif isClaim then
        lapsed[string.match(text, '^%S+', at + 16)] = true
      end
    end
    at = next
  end
  last, receipts = tonumber(string.sub(text, 1, FENCE_DIGITS)), string.sub(text, from)
  waiting = string.byte(text, WAITING_COLUMN) == FLAG_WAITING
  remembering = string.byte(text, REMEMBERING_COLUMN) == FLAG_REMEMBERING
end

-- Whether the calling process let a claim lapse. If this call is its poll, the process is owed a turn, and not suspended.
local hasLapsed = lapsed[caller]

-- Until when the record remembers a release: "<second>.<us> <for ms>".
local function untilMs(second, us, ms)
  return second * 1000 + math.floor(us / 1000) + ms
end
