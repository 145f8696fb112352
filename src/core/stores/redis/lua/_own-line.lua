-- Where the line of the calling hold is, in a record that tells of readers alone, with their earliest end; else both are nil.
local from, to
if text and string.byte(text, 20) == 33 then
  local at = string.find(text, ARGV[1], 50, true)
  local isWhole = at and string.byte(text, at - 1) == 32 and (string.byte(text, at + #ARGV[1]) or 10) == 10
  if isWhole then from, to = at - 16, at + #ARGV[1] - 1 end
end
