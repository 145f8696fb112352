-- Suspends a process that waits. One that does not wait would never poll, and nothing would end its mark.
local function suspend(name)
  if redis.call('ZSCORE', queue, ':p' .. name) then redis.call('ZADD', queue, 1, ':s' .. name) end
end
