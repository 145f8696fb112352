-- At maxmemory, a write that needs memory is allowed only after another write.
if isThin then redis.call('PEXPIRE', KEYS[1], RECORD_TTL_MS) end
