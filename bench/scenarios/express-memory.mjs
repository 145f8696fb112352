import { atLeast } from '../lib/compare.mjs';
import { startApps } from '../lib/express-apps.mjs';

export const expressMemory = {
  name: 'express-memory',
  title: 'A guarded route, locks in memory',
  what:
    'An Express application under load from another process, 32 keep-alive connections, each request on an id of its ' +
    'own: `traceContext` and `lockOn` before the handler, against the middleware of cls-rtracer alone. The processor ' +
    "time is the server's own.",
  contenders: ['cls-rtracer alone', 'reenlock guard'],
  columns: { perSecond: 'requests/s', cpuUs: 'CPU µs a request', p50Us: 'p50 µs', p99Us: 'p99 µs' },
  reference: { name: 'cls-rtracer alone', column: 'perSecond' },
  rounds: 11,
  size: { connections: 32, amount: 6_000 },
  quickRounds: 3,
  quickSize: { amount: 3_000 },

  async open(names, { size }) {
    const session = await startApps(names, {});
    for (const name of names) await session.get(name).post('/orders', size);
    return session;
  },

  async measure(session, name, { size }) {
    const { post, usedUs } = session.get(name);
    const before = await usedUs();
    const figures = await post('/orders', size);
    return { ...figures, cpuUs: ((await usedUs()) - before) / size.amount };
  },

  targets: ({ ratio }) => [
    atLeast('requests/s, × cls-rtracer alone', ratio('reenlock guard', 'cls-rtracer alone', 'perSecond'), 0.85),
  ],
};
