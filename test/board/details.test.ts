import { type IncomingMessage, ServerResponse } from 'node:http';
import { currentTrace, lock } from 'reenlock';
import { type BoardReply, rethrow } from '../../src/board/board-reply.ts';
import { LockBoard } from '../../src/board/lock-board.ts';
import type { LockDetails } from '../../src/board/lock-details.ts';
import { gate } from '../support/gate.ts';
import { coreTests, type Job, type Setup } from '../support/stores/set-up.ts';

const setUp = coreTests();

async function detailsOf({ locks }: Setup, id: string): Promise<LockDetails> {
  const board = new LockBoard({ locks, authorize: () => ({ name: 'ann' }) });
  const answer = { send: (reply: BoardReply) => reply, pass: () => undefined, fail: rethrow, leave: () => undefined };
  const url = `/lock?id=${id}`;
  const req = { method: 'GET', headers: {} } as IncomingMessage;
  const call = { req, res: new ServerResponse(req), url, originalUrl: url, body: undefined };
  const reply = await board.serve<BoardReply | undefined>(call, {}, answer);
  return JSON.parse(String(reply?.body)) as LockDetails;
}

/** Branches of a job that each hold a key, or wait for it, until the test ends. */
function branches(job: Job, key: string, count: number, options = {}): void {
  const work = gate();
  const run = () => lock.run(key, () => work, options);
  // Refused at the end of the job.
  job.in(() => Array.from({ length: count }, run).forEach((each) => void each.catch(() => {})));
  ends.push(() => work.open());
}

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

describe('The details of a lock', () => {
  it('The details name the branches of its own trace that a waiter waits for, and no strangers', async () => {
    const setup = setUp();
    const [job, other] = [setup.job(), setup.job()];
    branches(job, 'k', 2);
    await setup.clock.settle();
    branches(other, 'k', 1);
    await setup.clock.settle();
    const { holds, waiters, localWaiters } = await detailsOf(setup, 'k');
    const traceId = job.in(() => currentTrace()?.traceId);
    expect(holds).toMatchObject([{ traceId, branch: '1' }]);
    expect(waiters).toMatchObject([
      { traceId, branch: '2', waitsFor: ['1'] },
      { traceId: other.in(() => currentTrace()?.traceId), waitsFor: [] },
    ]);
    expect(localWaiters).toEqual([]);
  });

  it('A branch that reads does not wait for a branch that reads, though a writer stands before it', async () => {
    const setup = setUp();
    const [job, writer] = [setup.job(), setup.job('writer')];
    branches(job, 'k', 1, { mode: 'read' });
    await setup.clock.settle();
    branches(writer, 'k', 1);
    await setup.clock.settle();
    branches(job, 'k', 1, { mode: 'write' });
    branches(setup.job(), 'k', 1, { mode: 'read' });
    await setup.clock.settle();
    const { waiters } = await detailsOf(setup, 'k');
    expect(waiters.map(({ mode, waitsFor }) => [mode, waitsFor])).toEqual([
      ['write', []],
      ['write', ['1']],
      ['read', []],
    ]);
  });

  it('The details name what waits in this process for another branch of its request, on this process’s board alone', async () => {
    const setup = setUp();
    const job = setup.job();
    await job.in(() => lock.acquire('k'));
    branches(job, 'k', 2);
    await setup.clock.advance(700);
    const traceId = job.in(() => currentTrace()?.traceId);
    const { holds, waiters, localWaiters } = await detailsOf(setup, 'k');
    expect(holds).toMatchObject([{ traceId, branch: '' }]);
    expect(waiters).toEqual([]);
    expect(localWaiters).toEqual([{ holdId: expect.any(String), traceId, branch: '1', mode: 'write', waitedMs: 700 }]);
    expect((await detailsOf(setup.sibling(), 'k')).localWaiters).toEqual([]);
    expect((await detailsOf(setup, 'other')).localWaiters).toEqual([]);
  });

  it('A hold that only its own request re-enters is waited for by what is nested in it elsewhere', async () => {
    const setup = setUp();
    const [job, called] = [setup.job('trace'), setup.job('trace')];
    await job.in(() => lock.acquire('k', { reentrant: 'request' }));
    branches(called, 'k', 1);
    await setup.clock.settle();
    expect((await detailsOf(setup, 'k')).waiters).toMatchObject([{ traceId: 'trace', waitsFor: [''] }]);
  });
});
