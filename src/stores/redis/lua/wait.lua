-- wait: tell whether a waiter is in the queue, and list the holds; changes nothing.
-- ARGV[1] the waiter
-- Returns {queued at in us or false, hold, owner, fence, …}; of very many readers the first ones.
-- Safe to repeat: it only reads.
--@include parts/layout
local format, fence, ends, queued = unpack(redis.call('HMGET', lock, 'format', 'fence', 'ends', 'queued'))
if format and format ~= FORMAT_NUMBER then return redis.error_reply('RLFORMAT the lock is of another format') end
ends = tonumber(ends or 0)
--@include parts/holds
local channels = ''
--@include parts/queue
local text = queued and redis.call('HGET', waiters, 'w:' .. ARGV[1])
local reply = {text and readWaiter(ARGV[1], text).sinceUs or false}
for _, each in ipairs(listHolds('(' .. nowMs, '+inf', LIST_LIMIT)) do
  if tonumber(each.endMs) > nowMs then
    for _, part in ipairs({each.id, each.owner, fence}) do reply[#reply + 1] = part end
  end
end
return reply
