-- Refuses a record that another format of the package wrote. This format's records begin with a digit, or with 'p' and the
-- number of permits; those of a later one must not. Needs `text`, the record or false. Sets `permits`, and takes them from
-- `text`.
local permits
if text and string.byte(text) > DIGIT_NINE then
  permits = tonumber(string.match(text, '^p(%d%d%d%d)%d'))
  if not permits then return redis.error_reply('RLFORMAT the record is of another format') end
  text = string.sub(text, 6)
end
