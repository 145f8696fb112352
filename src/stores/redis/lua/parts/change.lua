-- Which holds may exist together, and under which fence.

-- How many owners hold that are no ancestors of this one, nor of another holder.
local function branchesBeside(owner)
  local others, above, number = {}, {}, 0
  for _, field in ipairs(redis.call('HKEYS', HOLDS_KEY)) do
    local other = string.match(field, '^o:(.*)$')
    if other and not isAncestor(other, owner) then
      others[#others + 1] = other
      for _, ancestor in ipairs(fieldsOf('', other, {})) do above[ancestor] = (above[ancestor] or 0) + 1 end
    end
  end
  for _, other in ipairs(others) do
    if above[other] == 1 then number = number + 1 end
  end
  return number
end

-- Whether one more may come. Holds of ancestors never exclude it. Of the others, each branch counts as one owner together
-- with its ancestors: there may be as many owners as the least limit says.
local function admits(owner, mode, family)
  local outside, most = count - family, math.min(limitOf(leastMode), limitOf(mode))
  if outside == 0 or outside < most then return true end
  return most > 1 and branchesBeside(owner) < most
end

-- Whether a new hold has the last fence: readers share it, and so does an owner whose family holds with no greater limit. One with
-- the limit 1 has no others alongside it, except of its own family.
local function sharesFence(hold, family)
  local limit = limitOf(hold.mode)
  if hold.fence or hold.mode == 'read' then return true end
  if family == 0 or limitOf(leastMode) > limit then return false end
  if limit == 1 or not isMixed then return true end
  for _, text in ipairs(redis.call('HVALS', HOLDS_KEY)) do
    local _, other, mode = string.match(text, HOLD_PATTERN)
    if other and isAncestor(other, hold.owner) and limitOf(mode) <= limit then return true end
  end
  return false
end

-- Adds a hold, or a waiter as one, to the keys of several. `number` is how many its owner has then.
local function addBeside(hold, number)
  grants = (grants or 0) + 1
  local text = table.concat({hold.process, hold.owner, hold.mode, hold.fence or fence, grants, hold.isClaim and 'claim' or nil}, ' ')
  redis.call('HSET', HOLDS_KEY, 'h:' .. hold.id, text, 'o:' .. hold.owner, number)
  redis.call('ZADD', LEASES_KEY, hold.endMs, hold.id)
end

-- Moves the only hold to the keys of several, and removes what else is there.
local function moveBeside()
  local fields, ids = isStale and redis.call('HKEYS', HOLDS_KEY) or {}, isStale and redis.call('ZRANGE', LEASES_KEY, 0, -1) or {}
  addBeside({id = onlyId, process = onlyProcess, owner = onlyOwner, mode = leastMode, isClaim = claims > 0, endMs = ends}, 1)
  for _, field in ipairs(fields) do
    if field ~= 'h:' .. onlyId and field ~= 'o:' .. onlyOwner then redis.call('HDEL', HOLDS_KEY, field) end
  end
  for _, id in ipairs(ids) do
    if id ~= onlyId then redis.call('ZREM', LEASES_KEY, id) end
  end
  redis.call('HDEL', LOCK_KEY, 'hold', 'owner', 'process')
  several, isStale = true, false
end

-- Grants a hold that `admits` admitted, beside others. `family` and `number` are what `familyOf` returned. A hold that is passed on
-- may keep the fence that it got, `hold.fence`.
local function grantBeside(hold, family, number)
  local wanted, most = limitOf(hold.mode), limitOf(leastMode)
  -- Kept already: another lease ends in the same minute, or later.
  local isKept = several and math.floor(hold.endMs / 6e4) <= math.floor(ends / 6e4)
  if not several then moveBeside() end
  if not sharesFence(hold, family) then
    local raised = math.max(nowUs, fence + 1, hold.minFence or 0)
    fence, isKept = string.format('%.0f', raised), isKept and raised == nowUs
  end
  count, ends = count + 1, math.max(ends, hold.endMs)
  addBeside(hold, number + 1)
  redis.call('HSET', LOCK_KEY, 'fence', fence, 'ends', ends, 'holds', count, 'grants', grants)
  if hold.isClaim then
    claims = claims + 1
    redis.call('HSET', LOCK_KEY, 'claims', claims)
  end
  if wanted ~= most then
    isMixed = true
    redis.call('HSET', LOCK_KEY, 'mixed', 1)
  end
  if wanted < most then
    leastMode = hold.mode
    redis.call('HSET', LOCK_KEY, 'mode', leastMode)
  end
  if isKept then return end
  local untilMs = ends
  --@include parts/lock keep
  redis.call('PEXPIRE', HOLDS_KEY, keepMs)
  redis.call('PEXPIRE', LEASES_KEY, keepMs)
end

--@section remove
-- Removing holds.

-- Nobody holds any more. The keys of several holds stay until `done`: they may be filled again.
local function clear()
  redis.call('HDEL', LOCK_KEY, ONLY_HOLD_FIELDS, 'holds', 'grants', 'mixed')
  isStale = isStale or several
  count, ends, claims, several, isMixed, onlyId, grants, leastMode = 0, 0, 0, nil, nil, nil, nil, 'write'
end

-- Finds the mode with the least limit, of several holds. If their key was lost, there may be none in it.
local function findLeast()
  local most = 0
  leastMode = 'read'
  for _, text in ipairs(redis.call('HVALS', HOLDS_KEY)) do
    local _, _, mode = string.match(text, HOLD_PATTERN)
    if mode then
      most = math.max(most, limitOf(mode))
      if limitOf(mode) < limitOf(leastMode) then leastMode = mode end
    end
  end
  isMixed = most > limitOf(leastMode)
  redis.call('HSET', LOCK_KEY, 'mode', leastMode)
  if not isMixed then redis.call('HDEL', LOCK_KEY, 'mixed') end
end

-- Removes a hold. `number` is how many its owner has, as Redis says it, if that is known.
local function remove(id, owner, isClaim, number)
  if count == 1 then return clear() end
  redis.call('ZREM', LEASES_KEY, id)
  if (number or redis.call('HGET', HOLDS_KEY, 'o:' .. owner)) == '1' then
    redis.call('HDEL', HOLDS_KEY, 'h:' .. id, 'o:' .. owner)
  else
    redis.call('HDEL', HOLDS_KEY, 'h:' .. id)
    redis.call('HINCRBY', HOLDS_KEY, 'o:' .. owner, '-1')
  end
  local _, latest = unpack(redis.call('ZRANGE', LEASES_KEY, '-1', '-1', 'WITHSCORES'))
  count, ends = count - 1, tonumber(latest or ends)
  redis.call('HSET', LOCK_KEY, 'holds', count, 'ends', ends)
  if isClaim then
    claims = claims - 1
    redis.call('HSET', LOCK_KEY, 'claims', claims)
  end
  if isMixed then findLeast() end
end

-- Removes the holds whose leases have expired. A process that let a claim lapse is suspended, if it waits: one that does not would
-- never poll, and nothing would end that. Returns the holds.
local function dropExpired()
  if not hasExpired() then return {} end
  local ended = listHolds('-inf', nowMs, count)
  if #ended > 0 and ends <= nowMs then clear() end
  for _, hold in ipairs(ended) do
    if count > 0 then remove(hold.id, hold.owner, hold.isClaim) end
    local known = hold.isClaim and queued and redis.call('HGET', WAITERS_KEY, 'p:' .. hold.process)
    if known then setState(hold.process, known, 'suspended') end
  end
  return ended
end

--@section bury
-- Remembers the release of `hold` for as long as an acquire of it may still arrive, `tombstoneMs`; and by `status`, whether it had
-- held, for a repeat.
if tombstoneMs ~= '0' then
  local goneMs, untilMs = nowMs + tombstoneMs, ends
  redis.call('ZREMRANGEBYSCORE', TOMBSTONES_KEY, '-inf', nowMs)
  redis.call('ZADD', TOMBSTONES_KEY, goneMs + (status == 'released' and 0.5 or 0), hold)
  buriedUntilMs = math.max(goneMs, buriedUntilMs or 0)
  redis.call('HSET', LOCK_KEY, 'format', FORMAT_NUMBER, 'tombstones', buriedUntilMs)
  redis.call('PEXPIRE', TOMBSTONES_KEY, buriedUntilMs - nowMs)
  --@include parts/lock keep
end
