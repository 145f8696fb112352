-- Grants a lock that nobody holds. `hold`, `owner`, `process`, `mode` and `endMs` are the new hold's; `claims` is 1 if it is a claim.
local last = fence
--@include parts/fence
if claims == 1 then
  redis.call('HSET', lock, 'fence', fence, 'ends', endMs, 'hold', hold, 'owner', owner, 'process', process, 'claims', 1)
else
  redis.call(
    'HSET', lock, 'format', FORMAT_NUMBER, 'fence', fence, 'ends', endMs, 'hold', hold, 'owner', owner, 'process', process
  )
end
if mode ~= 'write' then redis.call('HSET', lock, 'mode', mode) end
-- Kept already: the last grant was in this minute.
local isKept = last and fence == now and math.floor(last / 6e7) == math.floor(fence / 6e7) and endMs - nowMs <= 4e4
if not isKept then
  local untilMs = endMs
  --@include parts/keep
end
