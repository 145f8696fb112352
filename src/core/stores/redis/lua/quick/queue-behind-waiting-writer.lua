-- Others read, none of their leases is over, and the first waiter is a writer: the caller waits behind it, and nothing else
-- changes.
if isRead and waitingFlag == FLAG_WAITING and string.byte(ARGV[2], 16) == DIGIT_ONE then
  local wants, priority, maxWaiters, livenessMs = string.match(ARGV[2], '^(%a %d+ (%-?%d+)) (%d+) (%d+)', 18)
  local atMs = time[1] * 1000 + math.floor(time[2] / 1000)
  local over = string.find(text, '\n#', LAST_END_COLUMN + 1, true) or #text + 1
  local others = string.sub(text, LAST_END_COLUMN + 1, over - 1)
  --@include parts/writer-first
  local caller, own, id = string.match(ARGV[1], '^(%S+) (%S+) (%S+)')
  local isNew = not string.find(others, ' ' .. own .. ' ', 1, true) and not string.find(text, ARGV[1], over, true)
  if isBarred and isNew and tonumber(string.sub(text, END_COLUMN, LAST_END_COLUMN)) > atMs then
    local marks = {':p' .. caller, ':s' .. caller, ':gr' .. id, ':ge' .. id, ':gc' .. id, ':ga' .. id}
    local known = redis.call('ZMSCORE', KEYS[2], unpack(marks))
    local isLive = known[1] and known[1] - atMs >= tonumber(livenessMs)
    for i = 2, 6 do isLive = isLive and not known[i] end
    local place = string.format('%.0f', time[1] * 1000000 + time[2] - priority * DEGREE_US - PLACE_ZERO)
    local hasRoom = isLive and redis.call('ZCOUNT', KEYS[2], '-inf', '(0') < tonumber(maxWaiters)
    if hasRoom and redis.pcall('ZADD', KEYS[2], 'NX', place, ARGV[1] .. ' ' .. wants) == 1 then
      redis.call('ZINCRBY', KEYS[2], 1, ':o' .. own)
      local freeAt = ''
      for ends in string.gmatch(others, '\nr(%d+)') do
        if ends > freeAt then freeAt = ends end
      end
      local ahead = redis.call('ZCOUNT', KEYS[2], '-inf', '(' .. place)
      return {'queued', atMs, tonumber(freeAt), 1, ahead, 0}
    end
  end
end
