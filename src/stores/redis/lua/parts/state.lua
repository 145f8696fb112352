-- Reads the lock.
--@include parts/layout
local format, fence, ends, queued, buriedMs = unpack(redis.call(
  'HMGET', lock, 'format', 'fence', 'ends', 'queued', 'tombstones'
))
if format and format ~= FORMAT_NUMBER then return redis.error_reply('RLFORMAT the lock is of another format') end
ends = tonumber(ends or 0)
--@include parts/holds
--@include parts/queue
