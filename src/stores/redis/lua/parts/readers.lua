-- The holds in the queue: readers that came while others held. No call looks at all of them.
--@include parts/reader-score

-- How many there are.
local readers = 0
-- The names of those that this call removed since their leases are over.
local ended = {}

-- What there is in a range of scores: leases, claims, or both.
local function countReaders(from, to)
  return redis.call('ZCOUNT', queue, from, to or '(' .. RELEASES_FROM)
end

-- Returns the readers of a range in the order of their ends; all, or the first ones.
local function readersIn(from, to, limit)
  local list = {}
  if countReaders(from, to) == 0 then return list end
  to = to or '(' .. RELEASES_FROM
  local found = redis.call('ZRANGE', queue, from, to, 'BYSCORE', 'LIMIT', 0, limit or -1, 'WITHSCORES')
  for i = 1, #found, 2 do
    local ends, isClaim, isRaised = readScore(found[i + 1])
    list[#list + 1] = {names = string.sub(found[i], 3), ends = ends, isClaim = isClaim, mode = isRaised and 's' or 'r'}
  end
  return list
end

local function writeReader(hold)
  redis.call('ZADD', queue, scoreOf(hold.ends, hold.isClaim, hold.mode == 's'), ':h' .. hold.names)
  keepQueue(hold.ends - nowMs)
end

local function addReader(hold, owner)
  writeReader(hold)
  redis.call('ZINCRBY', queue, 1, ':r' .. owner)
  -- The first one: if the record was lost, the queue may still have others.
  readers = readers == 0 and countReaders(READERS_FROM) or readers + 1
end

local function findReader(names)
  local score = readers > 0 and redis.call('ZSCORE', queue, ':h' .. names)
  if not score then return nil end
  local ends, isClaim = readScore(score)
  return {names = names, ends = ends, isClaim = isClaim}
end

local function removeReader(names, owner)
  if readers == 0 or not removeCounted(':h' .. names, ':r' .. owner) then return false end
  readers = readers - 1
  return true
end

local function readersOf(owner)
  return readers > 0 and tonumber(redis.call('ZSCORE', queue, ':r' .. owner) or 0) or 0
end

-- When the last of their leases ends.
local function lastReaderEnd()
  local latest = nowMs
  for _, top in ipairs({RELEASES_FROM, CLAIMS_FROM}) do
    local last = redis.call('ZRANGE', queue, '(' .. top, READERS_FROM, 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')
    if last[1] then latest = math.max(latest, (readScore(last[2]))) end
  end
  return latest
end

-- Removes those whose leases are over, and suspends the processes that let a claim lapse.
local function removeEnded(from)
  for _, hold in ipairs(readersIn(from, scoreOf(nowMs, from == CLAIMS_FROM, true))) do
    local process, owner = string.match(hold.names, '^(%S+) (%S+)')
    removeCounted(':h' .. hold.names, ':r' .. owner)
    if hold.isClaim then suspend(process) end
    ended[hold.names] = true
  end
end

local function findReaders()
  removeEnded(READERS_FROM)
  removeEnded(CLAIMS_FROM)
  readers = countReaders(READERS_FROM)
end

if text and string.byte(text, KIND_COLUMN) == SHARED_LINE then findReaders() end
