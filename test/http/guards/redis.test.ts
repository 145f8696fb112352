import { once } from 'node:events';
import Redis from 'ioredis';
import { getLock, type LockEvents } from 'reenlock';
import { RedisStore } from 'reenlock/redis';
import { type Gate, gate } from '../../support/gate.ts';
import { type App, describeStyles } from '../../support/http/frameworks.ts';
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

  /** A server as in a process of its own: its own `Locks`, on the one Redis. */
  async function serve(work: Gate, extend: (app: App, stage: ServerStage) => unknown = () => {}): Promise<ServerStage> {
    return ServerStage.start(framework, { store: new RedisStore({ client }) }, (app, stage) => {
      extend(app, stage);
      app.route('/:who', lockOn('k', { waitMs: 5_000 }), async (call) => {
        const { who } = call.params;
        stage.note(`${who} in`);
        const inner = await getLock('k').run((hold) => hold.fence);
        if (who === 'first') await work;
        stage.note(`${who} out`);
        call.send({ isSame: inner === call.lock?.fence, fence: inner });
      });
    });
  }

  it('A guard on Redis excludes the requests of two servers from each other, and hands over with the response', async () => {
    const work = gate();
    const [one, two] = [await serve(work), await serve(work)];
    const first = one.get('/first', 'first');
    await one.until('first in');
    const second = two.get('/second', 'second');
    await two.until('waiting second k');
    expect([await two.holder('k'), await one.waiters('k')]).toEqual(['first', ['second']]);
    expect(two.journal).not.toContain('second in');
    work.open();
    const [a, b] = [await first, await second];
    expect([a.body.isSame, b.body.isSame]).toEqual([true, true]);
    expect(b.body.fence).toBeGreaterThan(a.body.fence);
    await one.free('k');
    expect([one.count('granted first k'), one.count('released first k')]).toEqual([1, 1]);
  });

  it('A guard on Redis lets a request of the same trace re-enter from another server, with the same fence', async () => {
    const work = gate();
    const [one, two] = [await serve(work), await serve(work)];
    const first = one.get('/first', 'shared');
    await one.until('first in');
    const { body } = await two.get('/inner', 'shared');
    expect(await one.holder('k')).toBe('shared');
    work.open();
    expect((await first).body.fence).toBe(body.fence);
    await one.free('k');
  });

  it.each(['FIN', 'RST'] as const)(
    'A request that waits on Redis leaves the queue with its client (%s), and its handler never runs',
    async (how) => {
      const work = gate();
      const [one, two] = [await serve(work), await serve(work)];
      const first = one.get('/first', 'first');
      await one.until('first in');
      const second = (await two.connect()).request({ path: '/second', trace: 'second' });
      await two.until('waiting second k');
      await second.hangUp(how);
      await two.until('aborted second k');
      const third = two.get('/third', 'third');
      await two.until('waiting third k');
      work.open();
      expect([(await first).status, (await third).status]).toEqual([200, 200]);
      expect(two.journal).not.toContain('second in');
      await one.free('k');
    },
  );

  it('A guard responds with 503, names no server, and runs no handler while Redis is down', async () => {
    const log = jest.spyOn(console, 'error').mockImplementation(() => {});
    const one = await serve(gate(), (app) => app.inProduction());
    await redis.kill();
    const { status, headers, text } = await one.get('/first', 'first');
    expect([status, headers['retry-after']]).toEqual([503, '1']);
    expect(text).not.toMatch(new RegExp(`127\\.0\\.0\\.1|${redis.port}|redis`, 'i'));
    expect(one.journal).not.toContain('first in');
    await redis.restart();
    await until(() => client.status === 'ready');
    expect((await one.get('/second', 'second')).status).toBe(200);
    log.mockRestore();
  });

  it('failOpen on Redis lets requests in while the server is down, and locks again when it is back', async () => {
    const failedOpen: LockEvents['failedOpen'][] = [];
    const stage = await ServerStage.start(
      framework,
      { store: new RedisStore({ client }), storeTimeoutMs: 500 },
      (app) =>
        app.route('/x', lockOn('k', { failOpen: true }), (call) => call.send({ isHeld: call.lock?.isHeld() ?? false })),
    );
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
