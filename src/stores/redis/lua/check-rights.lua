-- check-rights: say which commands the user lacks the right to call; changes nothing.
-- KEYS[1] a lock's record   ARGV[1] a channel   ARGV[2]… commands, in capitals, some with a subcommand: 'PUBSUB NUMSUB'
-- Returns {command, …}: those that are lacking. Before Redis 7.0 only the two are tried that nobody would miss, but for the time
--   that a hand-off takes.
-- Safe to repeat: nothing listens to the message, which is empty.
local key, channel = KEYS[1], ARGV[1]
local lacking = {}

local function mayCall(name, sub)
  if redis.acl_check_cmd then
    if sub ~= '' then return redis.acl_check_cmd(name, sub, channel) end
    if name == 'PUBLISH' then return redis.acl_check_cmd(name, channel, '') end
    return redis.acl_check_cmd(name, key, key, key)
  end
  local reply
  if name == 'PUBLISH' then reply = redis.pcall('PUBLISH', channel, '') end
  if name == 'PUBSUB' then reply = redis.pcall('PUBSUB', 'NUMSUB', channel) end
  return type(reply) ~= 'table' or not reply.err
end

for i = 2, #ARGV do
  local name, sub = string.match(ARGV[i], '^(%S+) ?(%S*)$')
  if not mayCall(name, sub) then lacking[#lacking + 1] = ARGV[i] end
end
return lacking
