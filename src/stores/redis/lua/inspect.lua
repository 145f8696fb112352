-- inspect: list the holds and the waiters, or one waiter; changes nothing.
-- ARGV[1] the waiter, or none
-- Returns {now, {hold, owner, mode, process, fence, end, 1 if it is a claim, …}, {hold, owner, mode, process, priority,
--   queued at in us, …}}; of very many holds those that end first, of very many waiters the first ones.
-- Safe to repeat: it only reads.
local channels = ''
--@include parts/lock
--@include parts/holds
--@include parts/queue
local held, waits = {}, {}
local function append(list, ...)
  for _, part in ipairs({...}) do list[#list + 1] = part end
end
for _, each in ipairs(listHolds('(' .. nowMs, '+inf', LIST_LIMIT)) do
  if tonumber(each.endMs) > nowMs then
    append(held, each.id, each.owner, each.mode, each.process, fence, each.endMs, each.isClaim and 1 or 0)
  end
end
for _, id in ipairs(ARGV[1] and {ARGV[1]} or queued and redis.call('ZRANGE', QUEUE_KEY, 0, LIST_LIMIT - 1) or {}) do
  local each = readWaiter(id)
  if queued and each.process ~= '-' then append(waits, id, each.owner, each.mode, each.process, each.priority, each.sinceUs) end
end
return {nowMs, held, waits}
