import { loadReenlock } from '../lib/open-reenlock.mjs';

/** This package's guard, as its README shows it; `trust` is its default, named. */
export async function create({ client, from }) {
  const { createLocks, MemoryStore } = await loadReenlock('.', from);
  const { lockOn, traceContext } = await loadReenlock('express', from);
  const { RedisStore } = await loadReenlock('redis', from);
  const locks = createLocks({ store: client ? new RedisStore({ client }) : new MemoryStore() });
  return {
    context: traceContext({ locks, trust: 'internal' }),
    guard: lockOn((req) => `order:${req.params.id}`),
    close: () => locks.close(),
  };
}
