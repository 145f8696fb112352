import compression from 'compression';
import helmet from 'helmet';
import { createLocks, currentTrace, type Hold, type Locks, lock } from 'reenlock';
import request from 'supertest';
import { gate } from '../support/gate.ts';
import { type Above, BoardServer, boardHosts } from '../support/http/boards.ts';
import { type Job, startJob } from '../support/stores/set-up.ts';
import { until } from '../support/until.ts';

describe.each(boardHosts)('The stream of the board ($name)', ({ listener }) => {
  let locks: Locks;
  let board: BoardServer;
  let jobs: Job[];
  beforeEach(() => {
    locks = createLocks();
    jobs = [];
  });
  afterEach(async () => {
    await board?.stop();
    await Promise.all(jobs.map((job) => job.end()));
    await locks.close();
  });

  const job = (traceId: string): Job => {
    const started = startJob(locks, traceId);
    jobs.push(started);
    return started;
  };
  const hold = (traceId: string, key: string, options = {}): Promise<Hold> =>
    job(traceId).in(() => lock.acquire(key, options));
  const ann = () => ({ name: 'ann' });

  it('The stream first names the viewer, then the holders and waiters, then each change', async () => {
    const held = await hold('holder', 'order:42', { category: 'shop' });
    board = await BoardServer.start(listener({ locks, authorize: ann }));
    const stream = await board.stream();
    expect(await stream.next('user')).toEqual({ name: 'ann', mayForceRelease: false });
    const [row] = (await stream.until((rows) => rows.size === 1)).values();
    expect(row).toMatchObject({
      key: 'order:42',
      category: 'shop',
      holder: { traceId: 'holder', branch: '', mode: 'write', fence: held.fence },
      holds: 1,
      waiters: 0,
      next: [],
    });
    const waiting = hold('waiter', 'order:42', { category: 'shop' });
    const [busy] = (await stream.until((rows) => [...rows.values()].some(({ waiters }) => waiters > 0))).values();
    expect(busy).toMatchObject({
      holder: { traceId: 'holder', branch: '' },
      waiters: 1,
      next: [{ traceId: 'waiter', branch: '' }],
    });
    await held.release();
    await stream.until((rows) => [...rows.values()].some(({ holder }) => holder?.traceId === 'waiter'));
    await (await waiting).release();
    expect((await stream.next('update', ({ gone = [] }) => gone.length > 0)).gone).toEqual([row?.id]);
  });

  it('A row names the branch of its holder, and those of the branches that wait', async () => {
    const started = startJob(locks, undefined);
    jobs.push(started);
    const work = gate();
    const runs = started.in(() => [lock.run('order:42', () => work), lock.run('order:42', () => work)]);
    board = await BoardServer.start(listener({ locks, authorize: ann }));
    const stream = await board.stream();
    const [row] = (await stream.until((rows) => [...rows.values()].some(({ waiters }) => waiters > 0))).values();
    const traceId = started.in(() => currentTrace()?.traceId);
    expect(row).toMatchObject({ holder: { traceId, branch: '1' }, next: [{ traceId, branch: '2' }] });
    work.open();
    await Promise.all(runs);
  });

  it('A key with permits has their number in its row, and how many owners have one', async () => {
    await hold('one', 'pool', { permits: 3 });
    await hold('other', 'pool', { permits: 3 });
    board = await BoardServer.start(listener({ locks, authorize: ann }));
    const stream = await board.stream();
    const [row] = (await stream.until((rows) => rows.size === 1)).values();
    expect(row).toMatchObject({ key: 'pool', permits: { limit: 3, held: 2 }, holder: { mode: 'permit' }, holds: 2 });
  });

  it.each<[string, Above[]]>([
    ['alone', []],
    ['below helmet and compression', [helmet() as Above, compression({ threshold: 0 }) as Above]],
  ])('The stream begins at once, as text, with its headers, %s', async (_, above) => {
    board = await BoardServer.start(listener({ locks, authorize: ann }, ...above));
    const stream = await board.stream('/ops/locks/stream', { 'Accept-Encoding': 'gzip' });
    await stream.next('user');
    expect(stream.response.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
      'x-content-type-options': 'nosniff',
      'content-security-policy': expect.stringMatching(/^default-src 'none'; .*require-trusted-types-for 'script'$/),
    });
    expect(stream.response.headers).not.toHaveProperty('content-encoding');
    await hold('holder', 'k');
    await stream.until((rows) => rows.has('k'));
  });

  it('The stream allows `maxViewers` at once: one more gets a 503 until a viewer leaves', async () => {
    board = await BoardServer.start(listener({ locks, authorize: ann, maxViewers: 2 }));
    const [first] = [await board.stream(), await board.stream()];
    const { status, headers, body } = await request(board.server).get('/ops/locks/stream');
    expect([status, headers['retry-after']]).toEqual([503, '10']);
    expect(body.detail).toBe('Too many pages of this board are open');
    first.close();
    await until(async () => {
      const stream = await board.stream();
      return stream.response.statusCode === 200;
    });
  });

  it.each<[string, Record<string, string>, number]>([
    ['of the page itself', { 'Sec-Fetch-Site': 'same-origin' }, 200],
    ['that a user typed', { 'Sec-Fetch-Site': 'none' }, 200],
    ['of what is no browser', {}, 200],
    ['of another site', { 'Sec-Fetch-Site': 'cross-site' }, 403],
    ['of another origin of the site', { 'Sec-Fetch-Site': 'same-site' }, 403],
    ['of another origin, in a browser that only sends that', { Origin: 'https://evil.example' }, 403],
  ])(
    'A request %s for the stream or the details of a lock gets through unless another site has sent it',
    async (_, headers, status) => {
      let asked = 0;
      const authorize = () => {
        asked += 1;
        return ann();
      };
      board = await BoardServer.start(listener({ locks, authorize }));
      expect((await board.stream('/ops/locks/stream', headers)).response.statusCode).toBe(status);
      expect((await request(board.server).get('/ops/locks/lock?id=k').set(headers)).status).toBe(status);
      expect(asked).toBe(status === 200 ? 2 : 0);
    },
  );

  it('The stream ends when its `Locks` closes, so that the server can close', async () => {
    board = await BoardServer.start(listener({ locks, authorize: ann }));
    const stream = await board.stream();
    const closing = locks.close();
    expect(await stream.next('leave')).toEqual({ reason: 'closing' });
    await stream.ended;
    await closing;
  });

  it('The stream shows only the categories that the board was given', async () => {
    await hold('a', 'one', { category: 'shop' });
    await hold('a', 'two');
    await hold('a', 'three', { category: 'other' });
    await hold('a', 'long'.repeat(100), { category: 'shop' });
    board = await BoardServer.start(listener({ locks, authorize: ann, categories: ['shop', ''] }));
    const stream = await board.stream();
    const update = await stream.next('update', ({ status }) => status?.isComplete === true);
    expect(update.rows?.map(({ key }) => key).sort()).toEqual(['one', 'two']);
  });
});
