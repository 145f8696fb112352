import express from 'express';
import { createLocks, type Hold, type LockEvents, type Locks, lock } from 'reenlock';
import request from 'supertest';
import { type Above, BoardServer, boardHosts } from '../support/http/boards.ts';
import { type Job, startJob } from '../support/stores/set-up.ts';

const sameOrigin = { 'Sec-Fetch-Site': 'same-origin' };

describe.each(boardHosts)('A forced release on the board ($name)', ({ listener }) => {
  let locks: Locks;
  let forced: LockEvents['forced'][];
  let board: BoardServer;
  let job: Job;
  beforeEach(() => {
    locks = createLocks();
    forced = [];
    locks.on('forced', (event) => void forced.push(event));
    job = startJob(locks, 'holder');
  });
  afterEach(async () => {
    await board?.stop();
    await job.end();
    await locks.close();
  });

  const hold = (key: string, options = {}): Promise<Hold> => job.in(() => lock.acquire(key, options));

  async function start(mayForceRelease: unknown = true, options = {}, ...above: Above[]): Promise<void> {
    const authorize = () => ({ name: 'ann', mayForceRelease });
    board = await BoardServer.start(listener({ locks, authorize, ...options }, ...above));
  }

  function release(body: object | string, headers: Record<string, string> = sameOrigin): request.Test {
    return request(board.server).post('/ops/locks/release').set(headers).type('json').send(body);
  }

  it('A forced release takes the lock with the fence that was seen, and its event names the user and the reason', async () => {
    await start();
    const held = await hold('order:42', { category: 'shop' });
    const { body: seen } = await request(board.server).get('/ops/locks/lock?id=shop%7Corder:42');
    expect(seen).toMatchObject({
      key: 'order:42',
      category: 'shop',
      holds: [
        {
          traceId: 'holder',
          branch: '',
          fence: held.fence,
          heldMs: expect.any(Number),
          remainingMs: expect.any(Number),
        },
      ],
      waiters: [],
    });
    const { status, body } = await release({ id: seen.id, fence: held.fence, reason: ' stuck, ticket 7 ' });
    expect([status, body]).toEqual([200, { released: true }]);
    expect(forced).toEqual([
      { key: 'order:42', category: 'shop', fence: held.fence, by: 'ann', reason: 'stuck, ticket 7' },
    ]);
    expect(held.isHeld()).toBe(false);
  });

  it('A forced release of a lock that has changed hands does nothing and returns 409', async () => {
    await start();
    const { fence } = await hold('k');
    await job.in(() => lock.release('k'));
    const held = await hold('k');
    const { status, body } = await release({ id: 'k', fence, reason: 'stuck' });
    expect([status, body.detail]).toEqual([409, 'The lock has changed hands since you looked. Nothing was released']);
    expect([held.isHeld(), forced]).toEqual([true, []]);
  });

  it('A forced release works for a key that is known by its hash alone', async () => {
    await start();
    const held = await hold('long'.repeat(100));
    const id = (await locks.list()).locks[0]?.key;
    expect(id).toMatch(/^%h/);
    expect((await release({ id, fence: held.fence, reason: 'stuck' })).status).toBe(200);
    expect(held.isHeld()).toBe(false);
  });

  it.each([false, undefined, 'yes', 1])(
    'A forced release is refused to a user whose `mayForceRelease` is %p',
    async (may) => {
      await start(may === undefined ? null : may);
      const held = await hold('k');
      expect((await release({ id: 'k', fence: held.fence, reason: 'stuck' })).status).toBe(403);
      expect(held.isHeld()).toBe(true);
    },
  );

  it.each<[string, Record<string, string>, number]>([
    ['same-origin', { 'Sec-Fetch-Site': 'same-origin' }, 200],
    ['of another site', { 'Sec-Fetch-Site': 'cross-site' }, 403],
    ['of another origin of the site', { 'Sec-Fetch-Site': 'same-site' }, 403],
    ['that a user typed', { 'Sec-Fetch-Site': 'none' }, 403],
    ['of another site, whose Origin says otherwise', { 'Sec-Fetch-Site': 'cross-site', Origin: 'http://own' }, 403],
    ['of its own origin, by a browser without Sec-Fetch-Site', { Origin: 'http://own' }, 200],
    ['of another origin, by such a browser', { Origin: 'http://evil.example' }, 403],
    ['of an opaque origin', { Origin: 'null' }, 403],
    ['that says nothing of where it comes from', {}, 403],
  ])('A forced release by a request %s: %p gets a %i', async (_, headers, expected) => {
    await start();
    const held = await hold('k');
    const own = `http://127.0.0.1:${board.port}`;
    const sent = Object.entries(headers).map(([name, value]) => [name, value === 'http://own' ? own : value]);
    const url = new URL('/ops/locks/release', own).href;
    const response = await request(url)
      .post('')
      .set(Object.fromEntries(sent))
      .send({ id: 'k', fence: held.fence, reason: 'stuck' });
    expect(response.status).toBe(expected);
    expect(held.isHeld()).toBe(expected !== 200);
  });

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/jsonp'])(
    'A forced release that a form of another site could send, as %s, gets a 415',
    async (type) => {
      await start();
      const held = await hold('k');
      const body = JSON.stringify({ id: 'k', fence: held.fence, reason: 'stuck' });
      const response = await request(board.server)
        .post('/ops/locks/release')
        .set({ ...sameOrigin, 'Content-Type': type })
        .send(body);
      expect([response.status, held.isHeld()]).toEqual([415, true]);
    },
  );

  it.each<[string, object | string, number]>([
    ['no JSON', '{', 400],
    ['a list', [], 400],
    ['no id', { fence: 1, reason: 'x' }, 400],
    ['an id with braces', { id: 'a}{b', fence: 1, reason: 'x' }, 400],
    ['an id with white space', { id: 'a b', fence: 1, reason: 'x' }, 400],
    ['no fence', { id: 'k', reason: 'x' }, 400],
    ['a fence as text', { id: 'k', fence: '1', reason: 'x' }, 400],
    ['no reason', { id: 'k', fence: 1 }, 400],
    ['a reason of blanks', { id: 'k', fence: 1, reason: '  ' }, 400],
    ['a reason that is too long', { id: 'k', fence: 1, reason: 'x'.repeat(501) }, 400],
    ['more than a release can be', { id: 'k', fence: 1, reason: 'x'.repeat(20_000) }, 413],
  ])('A forced release with %s is refused', async (_, body, expected) => {
    await start();
    const response = await release(body);
    expect([response.status, response.type]).toEqual([expected, 'application/problem+json']);
  });

  it('A forced release reads the body that an earlier parser has read', async () => {
    await start(true, {}, express.json() as Above);
    const held = await hold('k');
    expect((await release({ id: 'k', fence: held.fence, reason: 'stuck' })).status).toBe(200);
    expect(held.isHeld()).toBe(false);
  });

  it('A forced release in a category that the board does not show gets a 404, as an inspection does', async () => {
    await start(true, { categories: ['shop'] });
    const held = await hold('k');
    expect((await release({ id: 'k', fence: held.fence, reason: 'stuck' })).status).toBe(404);
    expect((await request(board.server).get('/ops/locks/lock?id=k')).status).toBe(404);
    expect(held.isHeld()).toBe(true);
  });
});
