local isCluster = string.find(channels, '{', 1, true)

-- How many connections of a process listen in the lock's slot; nil if the server can't tell, or the user may not ask.
local function listenersOf(name)
  return redis.pcall('PUBSUB', 'SHARDNUMSUB', record .. ':' .. name)[2]
end

-- This server of the cluster, as a fraction.
local function serverMark()
  local id = redis.pcall('CLUSTER', 'MYID')
  return type(id) == 'string' and (tonumber(string.sub(id, 1, 6), 16) % 2047 + 1) / 2048 or 0
end

-- What the marks of a process say: 'live'; 'gone', so that its waiters go; 'passed', since it is suspended; or 'unreachable',
-- so that it will be suspended.
local function judge(name, untilMs, state)
  if not untilMs or tonumber(untilMs) <= nowMs then return 'gone' end
  if name == caller then return 'live' end
  if tonumber(state) == SUSPENDED_STATE or lapsed[name] then return 'passed' end
  if tonumber(state) == OWED_STATE then return 'live' end
  if not isCluster then return redis.call('PUBSUB', 'NUMSUB', channels .. name)[2] > 0 and 'live' or 'unreachable' end
  -- Nothing is known of a process that has yet to subscribe, or that subscribed on another server before the slot came here.
  local mark = untilMs % 1
  return mark > 0 and listenersOf(name) == 0 and mark == serverMark() and 'unreachable' or 'live'
end
