-- wait: tell whether a waiter is in the queue, and list the holds; changes nothing.
-- ARGV[1] the waiter
-- Returns {queued at in us or false, hold, owner, fence, …}; of very many readers the first ones.
-- Safe to repeat: it only reads.
local channels = ''
--@include parts/state
local waiter = queued and readWaiter(ARGV[1])
local reply = {waiter and waiter.process ~= '-' and waiter.sinceUs or false}
for _, each in ipairs(listHolds('(' .. nowMs, '+inf', LIST_LIMIT)) do
  if tonumber(each.endMs) > nowMs then
    for _, part in ipairs({each.id, each.owner, fence}) do reply[#reply + 1] = part end
  end
end
return reply
