import { setTimeout as sleep } from 'node:timers/promises';
import { atMost, headline } from '../lib/compare.mjs';
import { startApps } from '../lib/express-apps.mjs';
import { metered } from '../lib/meter.mjs';
import { callsOf } from '../servers/redis.mjs';

const pauseIsOverMs = 150;

export const expressRedis = {
  name: 'express-redis',
  title: 'A guarded route, locks in Redis',
  what:
    'The same application, one request at a time. The commands are those of its client, before the handler and in all; ' +
    'EVALSHA as the server counts them. For the column about a pause the handler pauses Redis for 100 ms and responds: if ' +
    'the response had to wait for Redis after the handler, it would take as long.',
  contenders: ['cls-rtracer alone', 'hand-written guard', 'reenlock guard'],
  columns: {
    p50Us: 'p50 µs',
    p99Us: 'p99 µs',
    clientUs: 'CPU µs a request',
    serverUs: 'Redis CPU µs a request',
    commandsBefore: 'commands before handler',
    commands: 'commands',
    evalsha: 'EVALSHA',
    pausedMs: 'response in a pause, ms',
  },
  reference: { name: 'hand-written guard', columns: ['p50Us'] },
  rounds: 12,
  size: { connections: 1, amount: 3_000 },
  quick: { rounds: 3, size: { amount: 500 } },

  async open(names, { servers, size }) {
    const session = await startApps(names, servers.ports);
    for (const name of names) await servers.get('redis').learn(name, () => session.get(name).post('/orders', size));
    return session;
  },

  async measure(session, name, { servers, size }) {
    const { post, server, counts } = session.get(name);
    const redis = servers.get('redis');
    const look = async () => ({ ...(await counts()), evalsha: await callsOf(redis.admin, 'evalsha') });
    const before = await look();
    const work = () => post('/orders', size);
    const figures = await metered({ workers: [server], server: redis, contender: name }, work);
    const after = await look();
    const each = (count) => (after[count] - before[count]) / (after.requests - before.requests);
    const paused = await post('/paused', { connections: 1, amount: 1 });
    await sleep(pauseIsOverMs);
    return {
      ...figures,
      commandsBefore: each('commandsBefore'),
      commands: each('commands'),
      evalsha: each('evalsha'),
      pausedMs: paused.p50Us / 1000,
    };
  },

  goals: ({ max, median }) => [
    atMost('commands before the handler, the most of all rounds', max('reenlock guard', 'commandsBefore'), 1),
    atMost('response while Redis pauses for 100 ms, ms', median('reenlock guard', 'pausedMs'), 50),
  ],
  headlines: ({ max }) => [
    headline(
      'a guarded Express route, locks in Redis',
      max('reenlock guard', 'commandsBefore'),
      'command before the handler',
      'the response waits for none after the handler',
    ),
  ],
};
