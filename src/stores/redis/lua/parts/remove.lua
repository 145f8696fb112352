-- Removing holds.

-- Nobody holds any more. The first write is one that maxmemory allows. The keys of several holds stay until `done`, because they may
-- be filled again: a server of a cluster that a slot moves away from can't make a key.
local function clear()
  redis.call('HDEL', lock, 'ends', 'hold', 'owner', 'process', 'mode', 'claims', 'holds', 'grants', 'mixed')
  isStale = isStale or several
  count, ends, claims, several, isMixed, onlyId, grants, leastMode = 0, 0, 0, nil, nil, nil, nil, 'write'
end

-- Finds the mode with the least limit, of several holds.
local function findLeast()
  local most = 0
  leastMode = 'read'
  for _, text in ipairs(redis.call('HVALS', holds)) do
    local mode = string.match(text, '^%S+ %S+ (%S+)')
    if mode then
      most = math.max(most, limitOf(mode))
      if limitOf(mode) < limitOf(leastMode) then leastMode = mode end
    end
  end
  isMixed = most > limitOf(leastMode)
  redis.call('HSET', lock, 'mode', leastMode)
  if not isMixed then redis.call('HDEL', lock, 'mixed') end
end

-- Removes a hold. `number` is how many its owner has, if that is known.
local function remove(id, owner, isClaim, number)
  if count == 1 then return clear() end
  redis.call('ZREM', leases, id)
  if (number or redis.call('HGET', holds, 'o:' .. owner)) == '1' then
    redis.call('HDEL', holds, 'h:' .. id, 'o:' .. owner)
  else
    redis.call('HDEL', holds, 'h:' .. id)
    redis.call('HINCRBY', holds, 'o:' .. owner, -1)
  end
  local _, latest = unpack(redis.call('ZRANGE', leases, -1, -1, 'WITHSCORES'))
  count, ends = count - 1, tonumber(latest or ends)
  redis.call('HSET', lock, 'holds', count, 'ends', ends)
  if isClaim then
    claims = claims - 1
    redis.call('HSET', lock, 'claims', claims)
  end
  if isMixed then findLeast() end
end

-- Removes the holds whose leases are over. A process that let a claim lapse is suspended, if it waits: one that does not would
-- never poll, and nothing would end that. Returns the holds.
local function dropExpired()
  if not hasExpired() then return {} end
  local ended = listHolds('-inf', nowMs, count)
  if #ended > 0 and ends <= nowMs then clear() end
  for _, hold in ipairs(ended) do
    if count > 0 then remove(hold.id, hold.owner, hold.isClaim) end
    local known = hold.isClaim and queued and redis.call('HGET', waiters, 'p:' .. hold.process)
    if known then setState(hold.process, known, 'suspended') end
  end
  return ended
end
