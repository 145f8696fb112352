-- wait: tell whether a waiter is in the queue, and list the holds; changes nothing.
-- KEYS[1] record   KEYS[2] queue
-- ARGV[1] the waiter, as a member of the queue
-- Returns {queued at in µs or false, hold id, owner, fence, …}; of very many readers the first ones.
-- Safe to repeat: it only reads.
--@include parts/layout
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local text = redis.call('GET', KEYS[1])
--@include parts/check-format
--@include parts/list-holds
local place = redis.call('ZSCORE', KEYS[2], ARGV[1])
local priority = string.match(ARGV[1], '(%-?%d+)$')
local reply = {place and place + PLACE_ZERO + priority * DEGREE_US}
listHolds(function(_, _, _, owner, id)
  reply[#reply + 1] = id
  reply[#reply + 1] = owner
  reply[#reply + 1] = tonumber(string.sub(text, 1, FENCE_DIGITS))
end)
return reply
