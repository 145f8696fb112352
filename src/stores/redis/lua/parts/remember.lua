local function forgetOwnReleases()
  receipts = string.gsub(receipts, '\n#(%S+)[^\n]*', function(process) return process == caller and '' or nil end)
end

-- If the oldest is not over, mostly none is: of a burst, each release would look at all of them.
local function forgetOldReleases()
  local line = '\n#%S+ %S+ %S+ %a(%d+)%.(%d+) (%d+)'
  local second, us, ms = string.match(receipts, '^' .. line)
  if untilMs(second, us, ms) > nowMs then return end
  receipts = string.gsub(receipts, line, function(...) return untilMs(...) <= nowMs and '' or nil end)
end

-- Remembers what this release returns: in the record, if that is kept for long enough and has room; else in the
-- queue. Forgets what was remembered for long enough. Returns whether it is remembered.
local function remember(status)
  local rememberMs = tonumber(amount)
  -- Nothing was there and nothing can come: a repeat finds the same.
  if status == 'absent' and flag ~= '2' then rememberMs = 0 end
  if remembering then
    remembering = redis.call('ZCOUNT', queue, '(' .. digits(nowUs), '+inf') > 0
    redis.call('ZREMRANGEBYSCORE', queue, digits(RELEASES_FROM), digits(nowUs))
  end
  if rememberMs == 0 then return false end
  if flag == '1' and status ~= 'absent' then forgetOwnReleases() end
  if #receipts > RELEASES_ROOM then forgetOldReleases() end
  local letter = string.sub(status, 1, 1)
  if flag ~= '2' and rememberMs <= RECORD_TTL_MS and #receipts <= RELEASES_ROOM then
    receipts = receipts .. '\n#' .. names .. ' ' .. letter .. time[1] .. '.' .. time[2] .. ' ' .. amount
  else
    allowGrowth()
    redis.call('ZADD', queue, digits(nowUs + rememberMs * 1000), ':g' .. letter .. holdId)
    keepQueue(rememberMs)
    remembering = true
  end
  return true
end
