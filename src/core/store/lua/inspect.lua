-- inspect: tell who holds and who waits; changes nothing.
-- KEYS[1] record   KEYS[2] queue
-- Returns {now, {hold id, owner, fence, end, kind, …}, {hold id, owner, queued at in µs, …}}; the first 1,000 waiters.
-- Safe to repeat: it only reads.
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local holds, waiters = {}, {}

local function append(list, ...)
  for _, part in ipairs({...}) do list[#list + 1] = part end
end

local text = redis.call('GET', KEYS[1]) or ''
local fence = tonumber(string.match(text, '^%d+'))
for id, ends, kind, owner in string.gmatch(text, '\n(%S+) (%d+) (%a+) (%S+)') do
  if tonumber(ends) > nowMs then append(holds, id, owner, fence, tonumber(ends), kind) end
end
local members = redis.call('ZRANGE', KEYS[2], 0, 999, 'WITHSCORES')
for i = 1, #members, 2 do
  local id, owner = string.match(members[i], '^(%S+) (%S+)')
  append(waiters, id, owner, tonumber(members[i + 1]))
end
return {nowMs, holds, waiters}
