import { loadReenlock } from '../lib/open-reenlock.mjs';

/** This package's guard, as its README shows it; `trust` is its default, named. */
export async function create({ client, from }) {
  const { createLocks, MemoryStore } = await loadReenlock('.', from);
  const { lockOn, traceContext } = await loadReenlock('express', from);
  const { RedisStore } = await loadReenlock('redis', from);
  // The servers of two builds lock the same keys, which the other build may not be able to read. The prefixes are of one length.
  const prefix = from === undefined ? 'reenlock:' : 'previous:';
  const locks = createLocks({ store: client ? new RedisStore({ client, prefix }) : new MemoryStore() });
  return {
    context: traceContext({ locks, trust: 'internal' }),
    guard: lockOn((req) => `order:${req.params.id}`),
    close: () => locks.close(),
  };
}
