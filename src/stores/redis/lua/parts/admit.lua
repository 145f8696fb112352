-- Who may hold together, and under which fence.

-- How many owners hold that are no ancestors of this one, nor of another holder.
local function branchesBeside(owner)
  local others, above, number = {}, {}, 0
  for _, field in ipairs(redis.call('HKEYS', holds)) do
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

-- Whether an owner and its ancestors, who hold, do so with no greater limit than this. One with the limit 1 has none beside it but
-- of its own family.
local function holdsWithin(owner, limit)
  if limitOf(leastMode) > limit or limit == 1 or not isMixed then return limitOf(leastMode) <= limit end
  for _, text in ipairs(redis.call('HVALS', holds)) do
    local other, mode = string.match(text, '^%S+ (%S+) (%S+)')
    if other and isAncestor(other, owner) and limitOf(mode) <= limit then return true end
  end
  return false
end

local function addBeside(hold, number, granted)
  grants = (grants or 0) + 1
  local text = table.concat({hold.process, hold.owner, hold.mode, granted, grants, hold.isClaim and 'claim' or nil}, ' ')
  redis.call('HSET', holds, 'h:' .. hold.id, text, 'o:' .. hold.owner, number)
  redis.call('ZADD', leases, hold.endMs, hold.id)
end

-- Removes from the keys of several holds all but the only hold, which was just added.
local function removeStale(fields, ids)
  for _, field in ipairs(fields) do
    if field ~= 'h:' .. onlyId and field ~= 'o:' .. onlyOwner then redis.call('HDEL', holds, field) end
  end
  for _, id in ipairs(ids) do
    if id ~= onlyId then redis.call('ZREM', leases, id) end
  end
  isStale = false
end

-- Grants a hold that `admits` admitted, beside others: the first one moves to where there may be several. `family` and `number` are
-- what `familyOf` returned. Readers share the last fence, and so does an owner whose family holds with no greater limit; a hold that
-- is passed on may keep the fence that it got, `hold.fence`.
local function grantBeside(hold, family, number)
  local isKept, wanted, most = several and math.floor(hold.endMs / 6e4) <= math.floor(ends / 6e4), limitOf(hold.mode), limitOf(leastMode)
  if not several then
    local fields, ids = isStale and redis.call('HKEYS', holds), isStale and redis.call('ZRANGE', leases, 0, -1)
    addBeside({
      id = onlyId, process = onlyProcess, owner = onlyOwner, mode = leastMode, isClaim = claims > 0, endMs = ends
    }, 1, fence)
    if isStale then removeStale(fields, ids) end
    redis.call('HDEL', lock, 'hold', 'owner', 'process')
    several = true
  end
  if not hold.fence and hold.mode ~= 'read' and (family == 0 or not holdsWithin(hold.owner, wanted)) then
    local raised = math.max(nowUs, fence + 1, hold.least or 0)
    fence, isKept = string.format('%.0f', raised), isKept and raised == nowUs
  end
  count, ends = count + 1, math.max(ends, hold.endMs)
  addBeside(hold, number + 1, hold.fence or fence)
  redis.call('HSET', lock, 'fence', fence, 'ends', ends, 'holds', count, 'grants', grants)
  if hold.isClaim then
    claims = claims + 1
    redis.call('HSET', lock, 'claims', claims)
  end
  if wanted ~= most then isMixed = redis.call('HSET', lock, 'mixed', 1) end
  if wanted < most then
    leastMode = hold.mode
    redis.call('HSET', lock, 'mode', leastMode)
  end
  if isKept then return end
  local untilMs = ends
  --@include parts/keep
  redis.call('PEXPIRE', holds, keepMs)
  redis.call('PEXPIRE', leases, keepMs)
end
