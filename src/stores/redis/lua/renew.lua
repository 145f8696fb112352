-- renew: move the end of a hold's lease away, and turn a claim into a lease.
-- KEYS[1] record   KEYS[2] queue
-- ARGV[1] names   ARGV[2] see parts/call.lua; the amount is the lease in ms   ARGV[3] fence
-- Returns {'renewed', now, end} | {'lost', now}
-- Safe to repeat: an end never moves nearer, and what is gone is never made again.
local time = redis.call('TIME')
local text = redis.call('GET', KEYS[1])
--@include parts/layout
--@include parts/check-format
--@include parts/reader-score
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local leaseMs, fence = tonumber(string.match(ARGV[2], '^%d+')), tonumber(ARGV[3])

-- Returns the new end of a hold, and keeps the record for longer than that; nil if the lease is over or the fence is another. At
-- maxmemory, only a write after this one may need memory.
local function extend(ends, isRaised)
  local last = tonumber(string.sub(text, 1, FENCE_DIGITS))
  if ends <= nowMs or fence ~= last and not (isRaised and fence < last) then return nil end
  redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), leaseMs + RECORD_TTL_MS))
  return math.max(ends, nowMs + leaseMs)
end

-- Renews a hold in the record: its names stand at the end of its line.
local function renewLine()
  local at = string.find(text .. '\n', ' ' .. ARGV[1] .. '\n', LINES_COLUMN, true)
  if not at then return nil end
  local kind, ends = string.sub(text, at - 14, at - 14), string.sub(text, at - 13, at - 1)
  ends = string.byte(ends) == RELATIVE_END and ends + string.sub(text, 1, 13) or tonumber(ends)
  ends = extend(ends, kind == 's' or kind == 'S')
  if not ends then return nil end
  local line = string.lower(kind) .. ends
  local head = permits and string.format('p%04d', permits) or ''
  redis.call('SET', KEYS[1], head .. string.sub(text, 1, at - 15) .. line .. string.sub(text, at), 'KEEPTTL')
  return ends
end

-- Renews a hold in the queue.
local function renewReader()
  local score = string.byte(text, KIND_COLUMN) == SHARED_LINE and redis.call('ZSCORE', KEYS[2], ':h' .. ARGV[1])
  if not score then return nil end
  local ends, _, isRaised = readScore(score)
  ends = extend(ends, isRaised)
  if not ends then return nil end
  redis.call('ZADD', KEYS[2], scoreOf(ends, false, isRaised), ':h' .. ARGV[1])
  if redis.call('PTTL', KEYS[2]) < ends - nowMs then redis.call('PEXPIRE', KEYS[2], ends - nowMs) end
  return ends
end

local ends = text and (renewLine() or renewReader())
if ends then return {'renewed', nowMs, ends} end
return {'lost', nowMs}
