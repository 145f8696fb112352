-- Sets `from` and `to`: the first and the last byte of the caller's line in a record that only tells of readers and their
-- earliest end; nil if there is none.
local from, to
if text and string.byte(text, KIND_COLUMN) == SHARED_LINE then
  local at = string.find(text, ARGV[1], 50, true)
  local isWhole = at
    and string.byte(text, at - 1) == SPACE_BYTE
    and (string.byte(text, at + #ARGV[1]) or LINE_FEED) == LINE_FEED
  if isWhole then from, to = at - 16, at + #ARGV[1] - 1 end
end
