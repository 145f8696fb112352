-- renew: move the end of a hold's lease away, and turn a claim into a lease.
-- KEYS[1] record   KEYS[2] queue   KEYS[3] meta
-- ARGV[1] hold id   ARGV[2] '- -'   ARGV[3] '0 0 0 -'   ARGV[4] fence   ARGV[5] lease ms
-- Returns {'renewed', now, end} | {'lost', now}
-- Safe to repeat: an end never moves nearer, and what is gone is never made again.
local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])
local fence, leaseMs = tonumber(ARGV[4]), tonumber(ARGV[5])
--@include _shared

local holds, last, waiting = readRecord(text)
for _, hold in ipairs(holds) do
  if hold.id == holdId and last == fence then
    hold.ends = math.max(hold.ends, nowMs + leaseMs)
    hold.kind = 'lease'
    writeRecord(holds, last, waiting)
    return {'renewed', nowMs, hold.ends}
  end
end
return {'lost', nowMs}
