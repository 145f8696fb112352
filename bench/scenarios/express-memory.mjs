import { atLeast, headline } from '../lib/compare.mjs';
import { startApps } from '../lib/express-apps.mjs';
import { metered } from '../lib/meter.mjs';

export const expressMemory = {
  name: 'express-memory',
  title: 'A guarded route, locks in memory',
  what:
    'An Express application under load from another process, 32 keep-alive connections, each request on an id of its ' +
    'own: `traceContext` and `lockOn` before the handler, compared with the middleware of cls-rtracer alone. The ' +
    'processor time is that of the process of the application.',
  contenders: ['cls-rtracer alone', 'reenlock guard'],
  columns: { perSecond: 'requests/s', clientUs: 'CPU µs a request', p50Us: 'p50 µs', p99Us: 'p99 µs' },
  reference: { name: 'cls-rtracer alone', columns: ['perSecond', 'clientUs'] },
  rounds: 12,
  size: { connections: 32, amount: 8_000 },
  quick: { rounds: 4, size: { amount: 2_000 } },

  async open(names, { size }) {
    const session = await startApps(names, {});
    for (const name of names) await session.get(name).post('/orders', size);
    return session;
  },

  measure(session, name, { size }) {
    const { post, server } = session.get(name);
    return metered({ workers: [server] }, () => post('/orders', size));
  },

  goals: ({ ratio }) => [
    atLeast('requests/s, × cls-rtracer alone', ratio('reenlock guard', 'cls-rtracer alone', 'perSecond'), 0.95),
  ],
  headlines: ({ ratio }) => [
    headline(
      'a guarded Express route, locks in memory',
      ratio('reenlock guard', 'cls-rtracer alone', 'perSecond'),
      '×',
      'the requests a second of cls-rtracer alone',
    ),
  ],
};
