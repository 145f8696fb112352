-- Sets `isBarred`: whether the first waiter keeps everybody out of a lock that others read, whose lines are `others`. It does
-- if it is live, as parts/liveness.lua has it, wants to write, and is none of them.
local process, owner = string.match(redis.call('ZRANGE', KEYS[2], 0, 0)[1] or '', '^(%S+) (%S+) %S+ w ')
local known = process and redis.call('ZMSCORE', KEYS[2], ':p' .. process, ':s' .. process) or {}
local isBarred = known[1] and tonumber(known[1]) > atMs and not known[2]
if isBarred and string.sub(ARGV[1], 1, #process + 1) ~= process .. ' ' then
  local channel = string.match(ARGV[2], '(%S+)$') .. process
  if not string.find(channel, '{', 1, true) then
    isBarred = redis.call('PUBSUB', 'NUMSUB', channel)[2] ~= 0
  elseif known[1] % 1 > 0 then
    isBarred = redis.pcall('PUBSUB', 'SHARDNUMSUB', KEYS[1] .. ':' .. process)[2] ~= 0
  end
end
isBarred = isBarred and not string.find(others, ' ' .. owner .. ' ', 1, true)
