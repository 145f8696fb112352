-- The holds, as core/machine/holds.ts has them: `count` of them; `several` if they have keys of their own.
local several, isMixed, grants
-- Whether the keys of several holds still have what `clear` removed.
local isStale = false
ends = tonumber(ends or 0)
if ends == 0 then
  onlyId = nil
elseif onlyId then
  count, onlyOwner, onlyProcess, leastMode, claims = 1, unpack(redis.call('HMGET', LOCK_KEY, 'owner', 'process', 'mode', 'claims'))
else
  several, leastMode, claims, isMixed, grants = unpack(redis.call('HMGET', LOCK_KEY, 'holds', 'mode', 'claims', 'mixed', 'grants'))
  count = tonumber(several or 1)
end
leastMode, claims = leastMode or 'write', tonumber(claims or 0)

-- Ends the script with a reply.
local function done(reply)
  if isStale then redis.call('DEL', HOLDS_KEY, LEASES_KEY) end
  return reply
end

-- Returns the tombstone of a hold, if it has one that counts.
local function tombstoneOf(id)
  local tombstone = tonumber(tonumber(buriedUntilMs or 0) > nowMs and redis.call('ZSCORE', TOMBSTONES_KEY, id) or 0)
  return tombstone > nowMs and tombstone
end

-- How many owners may hold the lock together with a hold of this mode.
local function limitOf(mode)
  if mode == 'write' then return 1 end
  return tonumber(mode) or math.huge
end

-- Appends to a list of fields those of an owner and its ancestors, the root first.
local function fieldsOf(prefix, owner, fields)
  local at = string.find(owner, '/', 1, true)
  while at do
    fields[#fields + 1] = prefix .. string.sub(owner, 1, at - 1)
    at = string.find(owner, '/', at + 1, true)
  end
  fields[#fields + 1] = prefix .. owner
  return fields
end

-- Whether one owner is an ancestor of another, or the same.
local function isAncestor(ancestor, owner)
  return ancestor == owner or #ancestor < #owner and string.sub(owner, 1, #ancestor + 1) == ancestor .. '/'
end

-- Whether the lease of a hold has expired.
local function hasExpired()
  return count > 0 and (ends <= nowMs or several and redis.call('ZCOUNT', LEASES_KEY, '-inf', nowMs) > 0)
end

-- Returns a hold, as the key of several says it; nothing if it is not there.
local function readHold(id)
  if several then return redis.call('HGET', HOLDS_KEY, 'h:' .. id) end
  if not id or id ~= onlyId then return nil end
  return onlyProcess .. ' ' .. onlyOwner .. ' ' .. leastMode .. ' ' .. fence .. ' 1' .. (claims > 0 and ' claim' or '')
end

-- When the lease of a hold ends.
local function endOf(id)
  return several and tonumber(redis.call('ZSCORE', LEASES_KEY, id) or ends) or ends
end

-- How many holds an owner and its ancestors have together, how deep the deepest of these is, and how many the owner has. Also
-- returns a hold, as `readHold` does. (In one call: `familyOf`, `depthOver` and `countOf` of core/machine/holds.ts.)
local function familyOf(owner, id)
  if not several then
    if count == 0 or not isAncestor(onlyOwner, owner) then return 0, 0, 0, readHold(id) end
    return 1, #fieldsOf('', onlyOwner, {}), onlyOwner == owner and 1 or 0, readHold(id)
  end
  local found = redis.call('HMGET', HOLDS_KEY, unpack(fieldsOf('o:', owner, {'h:' .. (id or '')})))
  local sum, depth = 0, 0
  for i = 2, #found do
    if found[i] then sum, depth = sum + found[i], i - 1 end
  end
  return sum, depth, tonumber(found[#found] or 0), found[1]
end

-- How many other holds the family of a hold has, and how many of these its owner has, of which a reader counts no readers. `family`
-- and `number` are what `familyOf` returned, if it was called.
local function othersOf(hold, family, number)
  if hold.hasNoFamily then return 0, 0 end
  local _
  if not family then family, _, number = familyOf(hold.owner) end
  if hold.mode ~= 'read' then return family - 1, number - 1 end
  local equal = 0
  if number > 1 and leastMode ~= 'read' then
    for _, text in ipairs(redis.call('HVALS', HOLDS_KEY)) do
      local _, owner, mode = string.match(text, HOLD_PATTERN)
      if owner == hold.owner and mode ~= 'read' then equal = equal + 1 end
    end
  end
  return family - 1, equal
end

-- Returns the holds whose leases end in a time, in the order in which they were granted; of very many, those that end first. The
-- only hold is returned whenever it ends.
local function listHolds(from, to, most)
  local ids, list = count > 0 and {onlyId, ends} or {}, {}
  if several then ids = redis.call('ZRANGE', LEASES_KEY, from, to, 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES') end
  for i = 1, #ids, 2 do
    local process, owner, mode, _, nr, claim = string.match(readHold(ids[i]) or '', HOLD_PATTERN)
    list[#list + 1] = process and {
      id = ids[i], process = process, owner = owner, mode = mode, nr = tonumber(nr), isClaim = claim ~= '', endMs = ids[i + 1]
    }
  end
  table.sort(list, function(a, b) return a.nr < b.nr end)
  return list
end
