-- renew: move the end of a hold's lease away, and turn a claim into a lease.
-- KEYS[1] record   KEYS[2] queue
-- ARGV[1] names   ARGV[2] see parts/call.lua; the amount is the lease in ms   ARGV[3] fence
-- Returns {'renewed', now, end} | {'lost', now}
-- Safe to repeat: an end never moves nearer, and what is gone is never made again.
local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])
--@include parts/layout
--@include quick/renew-beside-readers
--@include parts/general

-- Returns the end of the caller's hold, which is moved away; or nil if the hold is gone, or its fence is another.
local function extend()
  local fence = tonumber(ARGV[3])
  for _, hold in ipairs(holds) do
    if hold.names == names and (fence == last or hold.mode == 's' and fence < last) then
      hold.ends = math.max(hold.ends, nowMs + tonumber(amount))
      hold.isClaim = false
      writeRecord()
      return hold.ends
    end
  end
end

local ends = extend()
if ends then return {'renewed', nowMs, ends} end
return {'lost', nowMs}
