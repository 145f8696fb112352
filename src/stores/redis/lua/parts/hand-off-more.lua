-- Handing the lock to further waiters, beside others.

-- Makes a waiter a holder, for as long as its claim lasts.
local function claim(waiter, family, number)
  dequeue(waiter.id, waiter.fields, waiter.said, 2)
  waiter.isClaim = true
  -- The only waiter of its trace: this call grants it nothing else.
  waiter.isAlone = family == 0 and waiter.said[2] == '1'
  granted[#granted + 1], taken[waiter.id] = waiter, waiter
  grantBeside(waiter, family, number)
end

-- Returns the waiters of an owner and of its descendants, in order.
local function within(owner)
  local left, found, from = tonumber(redis.call('HGET', waiters, 'c:' .. owner) or 0), {}, 0
  while left > 0 and from < SCAN_LIMIT do
    local page = redis.call('ZRANGE', queue, from, from + PAGE_SIZE - 1)
    if #page == 0 then break end
    for _, id in ipairs(page) do
      local waiter = readWaiter(id)
      if isAncestor(owner, waiter.owner) then
        found[#found + 1], left = waiter, left - 1
      end
    end
    from = from + PAGE_SIZE
  end
  return found
end

-- Grants claims to the waiters of an owner that was just granted, and of its descendants, as far as the holds admit them. The
-- others advance before those who are not nested in a holder as deep.
handOffWithin = function(owner)
  local nested, left = within(owner), {}
  local size = #nested > 0 and redis.call('ZCARD', queue)
  for _, waiter in ipairs(nested) do
    local family, _, number = familyOf(waiter.owner)
    if admits(waiter.owner, waiter.mode, family) then
      readFamily(waiter)
      claim(waiter, family, number)
    else
      left[#left + 1] = waiter
    end
  end
  for _, waiter in ipairs(left) do
    local _, depth = familyOf(waiter.owner)
    redis.call('ZADD', queue, 'LT', placeOf(waiter.sinceUs, waiter.priority, depth), waiter.id)
    redis.call('HSET', lock, 'queued', 'front')
    queued = 'front'
  end
  -- Those that were passed over may have been among them.
  if #nested > 0 then page, at, isLast, passed = {}, 1, size + #left == #nested, 0 end
end

-- After one that shares the lock, goes on until one that the holds do not admit; or until many were granted: then the process of
-- the next one is told to go on.
local isAdmitted = false
while goesOn do
  if taken[first.id] then
    handOffWithin(first.owner)
    if limitOf(first.mode) == 1 then break end
    first = nextLive()
    if not first or first == true then break end
  end
  local family, _, number = familyOf(first.owner)
  isAdmitted = admits(first.owner, first.mode, family)
  if not isAdmitted or #granted >= GRANT_LIMIT then break end
  if owed[first.process] then setState(first.process, owed[first.process], 'live') end
  claim(first, family, number)
end
if isAdmitted and first and first ~= true and not taken[first.id] then tell(first.process, 'next ' .. first.id) end
