-- The lock is thin and free, but the calling process did not know that: grants it as XADD alone does.
if mayBeThin and isThin and not text then
  local leaseMs = tonumber(string.sub(ARGV[2], 3, 14))
  local id = redis.call('XADD', KEYS[1], '*', ARGV[1], leaseMs)
  text = recordOf(id, ARGV[1], leaseMs)
  -- Of more entries in a millisecond than it has fences, the rest makes a record.
  if tonumber(string.match(id, '%d+$')) < FENCES_PER_MS then
    redis.call('PEXPIRE', KEYS[1], leaseMs + RECORD_TTL_MS, 'GT')
    return {'thin', string.sub(text, 1, FENCE_DIGITS)}
  end
end
