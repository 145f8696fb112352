-- Grants the lock as a thin one, if no other process needs a release that the record remembers: those of the calling process
-- were all answered. In a cluster, on a server that a slot moves away from, a key that was deleted can't be made again.
local ownProcess, isNeeded = string.match(ARGV[1], '^%S+'), text and string.find(ARGV[2], '{', FLAG_COLUMN, true)
for process, second, us, ms in string.gmatch(releases, '\n#(%S+) [^\n]* %a(%d+)%.(%d+) (%d+)') do
  isNeeded = isNeeded or process ~= ownProcess and (second * 1000000 + us + ms * 1000) > tonumber(fence)
end
if not isNeeded then
  if text then
    -- At maxmemory, this write is refused, and so is the grant.
    redis.call('SET', KEYS[1], text, 'KEEPTTL')
    redis.call('DEL', KEYS[1])
  end
  local leaseMs = tonumber(string.sub(ARGV[2], 3, 14))
  redis.call('XADD', KEYS[1], string.sub(fence, 1, 13) .. '-' .. tonumber(string.sub(fence, 14)), ARGV[1], leaseMs)
  redis.call('PEXPIRE', KEYS[1], leaseMs + RECORD_TTL_MS)
  return {'thin', fence}
end
