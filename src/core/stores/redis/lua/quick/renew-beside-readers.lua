-- Others read as well, and none of the leases is over: only the caller's end is written.
--@include parts/own-line
if from and tonumber(string.sub(text, 1, FENCE_DIGITS)) == tonumber(ARGV[3]) then
  local atMs, leaseMs = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(string.match(ARGV[2], '^%d+'))
  if tonumber(string.sub(text, END_COLUMN, LAST_END_COLUMN)) > atMs then
    local ends = math.max(tonumber(string.sub(text, from + 2, from + 14)), atMs + leaseMs)
    if tonumber(redis.pcall('SETRANGE', KEYS[1], from + 1, ends)) then
      if redis.call('PTTL', KEYS[1]) < leaseMs + HOUR_MS then redis.call('PEXPIRE', KEYS[1], leaseMs + HOUR_MS) end
      return {'renewed', atMs, ends}
    end
  end
end
