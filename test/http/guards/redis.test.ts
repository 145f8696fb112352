import { once } from 'node:events';
import Redis from 'ioredis';
import type { LockEvents } from 'reenlock';
import { RedisStore } from 'reenlock/redis';
import { describeStyles, type GuardOptions } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';
import { disconnectTimeout } from '../../support/redis/client.ts';
import { type RedisServer, startRedis } from '../../support/redis/server.ts';
import { until } from '../../support/until.ts';
import { recordWarnings } from '../../support/warnings.ts';

const warnings = recordWarnings();

describeStyles('a guard on Redis', (framework) => {
  const { lockOn } = framework;
  let redis: RedisServer;
  let client: Redis;
  beforeAll(async () => {
    redis = await startRedis();
  });
  beforeEach(() => {
    client = new Redis(redis.url, { retryStrategy: () => 20, disconnectTimeout });
    client.on('error', () => {});
  });
  afterEach(ServerStage.endAll);
  afterEach(async () => {
    const ended = once(client, 'end');
    client.disconnect();
    await ended;
  });
  afterAll(() => redis.stop());

  const start = (guard: GuardOptions) =>
    ServerStage.start(framework, { store: new RedisStore({ client }), storeTimeoutMs: 500 }, (app, stage) =>
      app.route('/x', lockOn('k', guard), (call) => {
        stage.note('in');
        call.send({ isHeld: call.lock?.isHeld() ?? false });
      }),
    );

  it('A guard responds with 503, names no server, and runs no handler while Redis is down', async () => {
    const stage = await start({});
    await redis.kill();
    const { status, headers, text } = await stage.get('/x');
    expect([status, headers['retry-after']]).toEqual([503, '1']);
    expect(text).not.toMatch(new RegExp(`127\\.0\\.0\\.1|${redis.port}|redis`, 'i'));
    expect(stage.journal).not.toContain('in');
    await redis.restart();
    await until(() => client.status === 'ready');
    expect((await stage.get('/x')).body).toEqual({ isHeld: true });
  });

  it('failOpen on Redis lets requests in while the server is down, and locks again when it is back', async () => {
    const failedOpen: LockEvents['failedOpen'][] = [];
    const stage = await start({ failOpen: true });
    stage.locks.on('failedOpen', (event) => failedOpen.push(event));
    expect((await stage.get('/x', 'before')).body).toEqual({ isHeld: true });
    await redis.kill();
    const { status, body } = await stage.get('/x', 'during');
    expect({ status, body }).toEqual({ status: 200, body: { isHeld: false } });
    await redis.restart();
    await until(() => client.status === 'ready');
    expect((await stage.get('/x', 'after')).body).toEqual({ isHeld: true });
    expect(failedOpen.map(({ traceId }) => traceId)).toEqual(['during']);
    expect(warnings().filter(({ code }) => code === 'LOCK_FAILED_OPEN')).toHaveLength(1);
  });
});
