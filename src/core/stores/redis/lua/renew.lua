-- renew: move the end of a hold's lease away, and turn a claim into a lease.
-- KEYS[1] record   KEYS[2] queue
-- ARGV[1] names   ARGV[2] see _shared.lua; the amount is the lease in ms   ARGV[3] fence
-- Returns {'renewed', now, end} | {'lost', now}
-- Safe to repeat: an end never moves nearer, and what is gone is never made again.
local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])
--@include _own-line

-- Others read as well, and none of the leases is over: the end alone is written.
if from and tonumber(string.sub(text, 1, 16)) == tonumber(ARGV[3]) then
  local atMs, leaseMs = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(string.match(ARGV[2], '^%d+'))
  if tonumber(string.sub(text, 21, 33)) > atMs then
    local ends = math.max(tonumber(string.sub(text, from + 2, from + 14)), atMs + leaseMs)
    if tonumber(redis.pcall('SETRANGE', KEYS[1], from + 1, ends)) then
      if redis.call('PTTL', KEYS[1]) < leaseMs + 3600000 then redis.call('PEXPIRE', KEYS[1], leaseMs + 3600000) end
      return {'renewed', atMs, ends}
    end
  end
end
--@include _shared

local leaseMs = tonumber(amount)
for _, hold in ipairs(holds) do
  local fence = tonumber(ARGV[3])
  if hold.names == names and (fence == last or hold.mode == 's' and fence < last) then
    hold.ends = math.max(hold.ends, nowMs + leaseMs)
    hold.isClaim = false
    writeRecord()
    return {'renewed', nowMs, hold.ends}
  end
end
return {'lost', nowMs}
