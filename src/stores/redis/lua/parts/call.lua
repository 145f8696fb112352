-- The arguments of a call, and the time.
-- ARGV[1] "<process> <owner> <hold id>", the names of the caller
-- ARGV[2] "<amount> <flag> <mode> <claim ms> <priority> <most waiters> <liveness ms> <channel prefix>", in one argument: each
--   argument costs the client more than it costs to take this one apart here. With a brace in the prefix, this is a cluster,
--   in which a process may also listen to '<record>:<process>', in the lock's own slot
local record, queue = KEYS[1], KEYS[2]
local names = ARGV[1]
local caller, owner, holdId = string.match(names, '^(%S+) (%S+) (%S+)$')
local amount, flag, wants, maxWaiters, livenessMs, channels = string.match(
  ARGV[2], '^(%S+) (%d) (%a %d+ %-?%d+) (%d+) (%d+) (%S+)$'
)
local mode, priority = string.match(wants, '^(%a) %d+ (%-?%d+)$')
-- The caller as a member of the queue.
local ownMember = names .. ' ' .. wants
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local nowUs = time[1] * 1000000 + time[2]

local function digits(number)
  return string.format('%.0f', number)
end
