-- Sets `releases`: the lines of the releases that the record remembers from now on, with this one beside the earlier ones of its
-- process, or in place of them.
local releases = ''
if ms == '0' then
  releases = string.sub(text, afterHold)
else
  local own = '\n#' .. string.match(ARGV[1], '^%S+ ')
  local from = flag == '1' and string.find(text, own, afterHold, true)
  releases = string.sub(text, afterHold, (from or 0) - 1)
  while from do
    local to = string.find(text, '\n', from + 1, true)
    from = to and string.find(text, own, to, true)
    releases = releases .. (to and string.sub(text, to, (from or 0) - 1) or '')
  end
  releases = releases .. '\n#' .. ARGV[1] .. ' r' .. time[1] .. '.' .. time[2] .. ' ' .. ms
end
