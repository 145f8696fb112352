-- Grants a lock that nobody holds. `hold`, `owner`, `process`, `mode` and `endMs` are the new hold's; `claims` is 1 if it is a claim.
local last = tonumber(fence or 0)
-- A fence that nobody had: the time, or more than the last one, and at least `least`.
local raised = math.max(nowUs, last + 1, least)
fence = string.format('%.0f', raised)
if claims == 1 then
  redis.call(
    'HSET', lock, 'fence', fence, 'ends', endMs, 'hold', hold, 'owner', owner, 'process', process, 'mode', mode, 'claims', 1
  )
else
  redis.call(
    'HSET', lock, 'format', FORMAT_NUMBER, 'fence', fence, 'ends', endMs, 'hold', hold, 'owner', owner, 'process', process
  )
  if mode ~= 'write' then redis.call('HSET', lock, 'mode', mode) end
end
-- Kept already: the last grant was in this minute.
local isKept = raised == nowUs and math.floor(last / 6e7) == math.floor(raised / 6e7) and endMs - nowMs <= 4e4
if not isKept then
  local untilMs = endMs
  --@include parts/keep
end
