-- inspect: list the holds and the waiters; changes nothing.
-- KEYS[1] record   KEYS[2] queue
-- Returns {now, {hold id, owner, process, fence, end, kind, …}, {hold id, owner, process, mode, priority, queued at in µs, …},
--   how many permits there are, if any}; kind as in the record; of very many holds or waiters the first ones.
-- Safe to repeat: it only reads.
--@include parts/layout
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local text = redis.call('GET', KEYS[1])
--@include parts/check-format
--@include parts/list-holds
local holds, waiters = {}, {}

local function append(list, ...)
  for _, part in ipairs({...}) do list[#list + 1] = part end
end

listHolds(function(kind, ends, process, owner, id)
  append(holds, id, owner, process, tonumber(string.sub(text, 1, FENCE_DIGITS)), ends, kind)
end)
local members = redis.call('ZRANGE', KEYS[2], 0, LIST_LIMIT - 1, 'WITHSCORES')
for i = 1, #members, 2 do
  local process, owner, id, mode, priority = string.match(members[i], '^(%S+) (%S+) (%S+) (%a) %d+ (%-?%d+)$')
  if not process then break end
  append(waiters, id, owner, process, mode, priority, members[i + 1] + PLACE_ZERO + priority * DEGREE_US)
end
return {nowMs, holds, waiters, #holds + #waiters > 0 and permits or nil}
