import { type IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { type Hold, lock } from 'reenlock';
import { type BoardReply, rethrow } from '../../src/board/board-reply.ts';
import { LockBoard, type LockBoardOptions } from '../../src/board/lock-board.ts';
import { LockScanner } from '../../src/board/lock-scanner.ts';
import { runtimeOf } from '../../src/core/runtime/locks.ts';
import type { BoardMessage, Row } from '../support/http/boards.ts';
import { coreTests, type Job, type Setup } from '../support/stores/set-up.ts';

const setUp = coreTests();
// Hundreds of locks, minutes of the manual clock: that takes a while on a busy machine.
jest.setTimeout(60_000);

/** An open page: what it was sent, and the rows that it would show. */
interface Watcher {
  readonly messages: [event: string, data: BoardMessage][];
  readonly rows: Map<string, Row>;
  readonly status: BoardMessage['status'];
  readonly stream: Readable;
  close(): Promise<void>;
}

type Options = Partial<LockBoardOptions<unknown>>;

function boardOf({ locks }: Setup, options: Options = {}): LockBoard<unknown> {
  return new LockBoard({ locks, authorize: () => ({ name: 'ann' }), ...options });
}

async function open(setup: Setup, board: LockBoard<unknown>): Promise<Watcher> {
  const answer = { send: (reply: BoardReply) => reply, pass: () => undefined, fail: rethrow, leave: () => undefined };
  const reply = await board.serve<BoardReply | undefined>(call('/stream'), {}, answer);
  if (!(reply?.body instanceof Readable)) throw new Error(`No stream: ${reply?.status}`);
  const { body: stream } = reply;
  const messages: Watcher['messages'] = [];
  const rows: Watcher['rows'] = new Map();
  stream.setEncoding('utf8').on('data', (text: string) => {
    for (const [, event = '', data = ''] of text.matchAll(/event: (.*)\ndata: (.*)\n\n/g)) {
      const message = JSON.parse(data) as BoardMessage;
      messages.push([event, message]);
      for (const row of message.rows ?? []) rows.set(row.id, row);
      for (const id of message.gone ?? []) rows.delete(id);
    }
  });
  await setup.clock.settle();
  return {
    messages,
    rows,
    stream,
    get status() {
      return messages.findLast(([event]) => event === 'update')?.[1].status;
    },
    close: async () => {
      stream.destroy();
      await setup.clock.settle();
    },
  };
}

function call(url: string) {
  const req = { method: 'GET', headers: {} } as IncomingMessage;
  return { req, res: new ServerResponse(req), url, originalUrl: url, body: undefined };
}

const jobs = new WeakMap<Setup, Job>();

/** All that one process holds is one job's. */
function hold(setup: Setup, key: string, options = {}): Promise<Hold> {
  const job = jobs.get(setup) ?? setup.job();
  jobs.set(setup, job);
  return job.in(() => lock.acquire(key, options));
}

describe('The feed of the board', () => {
  it('The feed shows a lock of another process once the scan has reached its name', async () => {
    const other = setUp();
    const setup = other.sibling();
    for (let i = 0; i < 2_200; i++) await hold(other, `key:${i}`, { renew: false, leaseMs: 200_000 });
    const page = await open(setup, boardOf(setup));
    await setup.clock.advance(250);
    expect(page.status).toMatchObject({ scanned: 1_500, total: 2_200, isComplete: false });
    await setup.clock.advance(500);
    expect(page.status).toMatchObject({ scanned: 2_200, total: 2_200, isComplete: true });
    expect(page.rows.size).toBe(2_200);
    await page.close();
  });

  it('The feed shows within a third of a second what this process’s own events report', async () => {
    const setup = setUp();
    const page = await open(setup, boardOf(setup));
    await setup.clock.advance(1_000);
    const lists = setup.store.count('list');
    const held = await hold(setup, 'k');
    await setup.clock.advance(350);
    expect([...page.rows.keys()]).toEqual(['k']);
    await held.release();
    await setup.clock.advance(350);
    expect([...page.rows.keys()]).toEqual([]);
    expect(setup.store.count('list')).toBe(lists);
    await page.close();
  });

  it('The feed inspects the locks that it knows each second, and sends only what has changed', async () => {
    const other = setUp();
    const setup = other.sibling();
    const held = await hold(other, 'k', { renew: false, leaseMs: 60_000 });
    const page = await open(setup, boardOf(setup));
    await setup.clock.advance(2_000);
    const before = page.messages.length;
    const looks = setup.store.count('inspect');
    await setup.clock.advance(5_000);
    expect(setup.store.count('inspect') - looks).toBe(5);
    expect(page.messages.slice(before).flatMap(([, { rows = [] }]) => rows)).toEqual([]);
    await held.release();
    await setup.clock.advance(1_300);
    expect(page.rows.size).toBe(0);
    await page.close();
  });

  it('The feed sends something every ten seconds if nothing happens', async () => {
    const setup = setUp();
    const page = await open(setup, boardOf(setup));
    await setup.clock.advance(1_000);
    const before = page.messages.length;
    await setup.clock.advance(30_000);
    expect(page.messages.length - before).toBe(3);
    await page.close();
  });

  it('The feed scans once for all viewers, and stops when the last one has left', async () => {
    const setup = setUp();
    const board = boardOf(setup);
    const pages = [await open(setup, board), await open(setup, board), await open(setup, board)];
    await setup.clock.advance(10_000);
    const lists = setup.store.count('list');
    expect(lists).toBeLessThan(6);
    await hold(setup, 'k');
    await setup.clock.advance(500);
    for (const page of pages) expect([...page.rows.keys()]).toEqual(['k']);
    for (const page of pages) await page.close();
    await setup.clock.advance(60_000);
    expect(setup.store.count('list')).toBe(lists);
  });

  it('The feed authorizes each viewer again every minute, and sends the viewer’s rights to the page', async () => {
    const setup = setUp();
    let user: { name: string; mayForceRelease?: boolean } | false = { name: 'ann', mayForceRelease: true };
    const page = await open(setup, boardOf(setup, { authorize: () => user }));
    await setup.clock.advance(61_000);
    const users = () => page.messages.filter(([event]) => event === 'user').map(([, message]) => message);
    expect(users()).toEqual([{ name: 'ann', mayForceRelease: true }]);
    user = { name: 'ann' };
    await setup.clock.advance(60_000);
    expect(users()).toEqual([
      { name: 'ann', mayForceRelease: true },
      { name: 'ann', mayForceRelease: false },
    ]);
    user = false;
    await setup.clock.advance(60_000);
    expect(page.messages.at(-1)).toEqual(['leave', { reason: 'denied' }]);
    expect(page.stream.readableEnded).toBe(true);
  });

  it('The feed ends for a viewer for whom `authorize` fails, and a `warning` event has the reason', async () => {
    const setup = setUp();
    const warnings = setup.events('warning');
    let isBroken = false;
    const cause = new Error('no session store');
    const authorize = async () => {
      if (isBroken) throw cause;
      return { name: 'ann' };
    };
    const page = await open(setup, boardOf(setup, { authorize }));
    isBroken = true;
    await setup.clock.advance(61_000);
    expect(page.messages.at(-1)).toEqual(['leave', { reason: 'denied' }]);
    expect(warnings).toEqual([{ code: 'LOCK_BOARD_AUTHORIZE', message: expect.any(String), cause }]);
  });

  it('The feed reports since when the store has not replied, calls it once a second for each kind, and goes on when it replies', async () => {
    const other = setUp();
    const setup = other.sibling();
    for (let i = 0; i < 300; i++) await hold(other, `key:${i}`, { renew: false, leaseMs: 200_000 });
    const page = await open(setup, boardOf(setup));
    await setup.clock.advance(2_000);
    setup.store.always('inspect', { kind: 'rejected', error: new Error('down') });
    setup.store.always('list', { kind: 'rejected', error: new Error('down') });
    await setup.clock.advance(3_000);
    const calls = setup.store.calls.length;
    await setup.clock.advance(10_000);
    expect(setup.store.calls.length - calls).toBeLessThanOrEqual(22);
    expect(page.status?.failedMs).toBeGreaterThanOrEqual(11_000);
    expect(page.rows.size).toBe(300);
    setup.store.heal();
    await setup.clock.advance(2_500);
    expect(page.status).not.toHaveProperty('failedMs');
    await page.close();
  });

  it('The feed reports that the store replies again, also if nobody holds a lock', async () => {
    const setup = setUp();
    setup.store.always('list', { kind: 'rejected', error: new Error('down') });
    const page = await open(setup, boardOf(setup));
    await setup.clock.advance(12_000);
    expect(page.status).toMatchObject({ failedMs: expect.any(Number), isComplete: false });
    setup.store.heal();
    await setup.clock.advance(12_000);
    expect(page.status).toMatchObject({ isComplete: true });
    expect(page.status).not.toHaveProperty('failedMs');
    await page.close();
  });

  it('The feed shows what this process uses if the store can’t list', async () => {
    const setup = setUp();
    Object.assign(setup.store, { list: undefined });
    const page = await open(setup, boardOf(setup));
    await hold(setup, 'own');
    await hold(setup.sibling(), 'other');
    await setup.clock.advance(1_000);
    expect([...page.rows.keys()]).toEqual(['own']);
    expect(page.status).toMatchObject({ canList: false, isComplete: true });
    await page.close();
  });

  it('The feed keeps a limited number of locks, and reports that there are more while there are', async () => {
    const other = setUp();
    const setup = other.sibling();
    const holds: Hold[] = [];
    for (let i = 0; i < 12; i++) holds.push(await hold(other, `key:${i}`, { renew: false, leaseMs: 200_000 }));
    const scanner = new LockScanner(
      runtimeOf(setup.locks),
      () => true,
      10,
      () => {},
    );
    await setup.clock.advance(5_000);
    expect([scanner.rows.size, scanner.status.isFull]).toEqual([10, true]);
    for (const each of holds.slice(0, 4)) await each.release();
    await setup.clock.advance(10_000);
    expect([scanner.rows.size, scanner.status.isFull]).toEqual([8, false]);
    scanner.stop();
  });

  it('The feed keeps little for a viewer that reads nothing, sends it the newest state, and drops it after a minute', async () => {
    const other = setUp();
    const setup = other.sibling();
    const board = boardOf(setup);
    const held = await hold(other, 'first', { renew: false, leaseMs: 300_000 });
    for (let i = 0; i < 500; i++) await hold(other, `key:${i}`, { renew: false, leaseMs: 300_000 });
    const page = await open(setup, board);
    page.stream.pause();
    await setup.clock.advance(2_000);
    await held.release();
    await setup.clock.advance(20_000);
    expect(page.stream.readableLength).toBeLessThan(100_000);
    page.stream.resume();
    await setup.clock.advance(1_000);
    expect([page.rows.size, page.rows.has('first')]).toEqual([500, false]);
    page.stream.pause();
    for (let i = 0; i < 500; i++) await hold(other, `new:${i}`, { renew: false, leaseMs: 300_000 });
    await setup.clock.advance(90_000);
    expect(page.stream.destroyed).toBe(true);
  });
});
