import { createLocks, MemoryStore } from 'reenlock';
import { lockOn, traceContext } from 'reenlock/express';
import { RedisStore } from 'reenlock/redis';

/** This package's guard, as its README shows it; `trust` is its default, said aloud. */
export function create({ client }) {
  const locks = createLocks({ store: client ? new RedisStore({ client }) : new MemoryStore() });
  return {
    context: traceContext({ locks, trust: 'internal' }),
    guard: lockOn((req) => `order:${req.params.id}`),
    close: () => locks.close(),
  };
}
