import { setTimeout as sleep } from 'node:timers/promises';
import { atMost } from '../lib/compare.mjs';
import { startApps } from '../lib/express-apps.mjs';
import { callsOf } from '../lib/redis-server.mjs';

const pauseIsOverMs = 150;

export const expressRedis = {
  name: 'express-redis',
  title: 'A guarded route, locks in Redis',
  what:
    'The same application, one request at a time. Commands are those of its client, before the handler and in all; ' +
    'EVALSHA as the server counts them. For the last column the handler pauses Redis for 100 ms and answers: a client ' +
    'that had to wait for anything of Redis after the handler would see the pause.',
  contenders: ['cls-rtracer alone', 'hand-written guard', 'reenlock guard'],
  columns: {
    p50Us: 'p50 µs',
    p99Us: 'p99 µs',
    commandsBefore: 'commands before handler',
    commands: 'commands',
    evalsha: 'EVALSHA',
    pausedMs: 'answer in a pause, ms',
  },
  reference: { name: 'hand-written guard', column: 'p50Us' },
  rounds: 9,
  size: { connections: 1, amount: 1_000 },
  quickRounds: 3,
  quickSize: { amount: 300 },

  async open(names, { redis, size }) {
    const session = await startApps(names, { port: redis.port });
    for (const name of names) await session.get(name).post('/orders', { ...size, amount: 2_000 });
    return session;
  },

  async measure(session, name, { redis, size }) {
    const { post, counts } = session.get(name);
    const look = async () => ({ ...(await counts()), evalsha: await callsOf(redis.admin, 'evalsha') });
    const before = await look();
    const { p50Us, p99Us } = await post('/orders', size);
    const after = await look();
    const each = (count) => (after[count] - before[count]) / (after.requests - before.requests);
    const paused = await post('/paused', { connections: 1, amount: 1 });
    await sleep(pauseIsOverMs);
    return {
      p50Us,
      p99Us,
      commandsBefore: each('commandsBefore'),
      commands: each('commands'),
      evalsha: each('evalsha'),
      pausedMs: paused.p50Us / 1000,
    };
  },

  targets: ({ max, median }) => [
    atMost('commands before the handler, the most of all rounds', max('reenlock guard', 'commandsBefore'), 1),
    atMost('answer while Redis pauses for 100 ms, ms', median('reenlock guard', 'pausedMs'), 50),
  ],
};
