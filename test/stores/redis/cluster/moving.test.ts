import type { Cluster } from 'ioredis';
import type { WaitEdge } from '../../../../src/core/model/store.ts';
import type { LockMode } from '../../../../src/core/model/types.ts';
import { RedisStore } from '../../../../src/stores/redis/redis-store.ts';
import { longMs, shortMs } from '../../../../src/testing/contract/harness.ts';
import { key, type Line, type Process } from '../../../../src/testing/contract/stage.ts';
import { useCluster } from '../../../support/redis/cluster-stage.ts';
import { elapseOnRedis } from '../../../support/stores/elapse.ts';

jest.setTimeout(60_000);

/** A lock with one hold and some who wait, in the order in which they came, and what is done to it. */
interface Play {
  readonly holder: Line;
  readonly waiters: readonly Line[];
  readonly process: Process;
  readonly fence: number;
}

/** What is done, with so many waiters; what it replies; and who holds then, and who waits: the holder is 0, the waiters follow. */
type Step = readonly [
  name: string,
  waiters: '1 reader' | '1 writer' | '2 readers' | '2 writers',
  call: (play: Play) => Promise<unknown>,
  reply: unknown,
  holds: readonly (number | 'new')[],
  left: readonly (number | 'new')[],
];

// A key that is not there can neither be made nor looked at on a server that its slot moves away from.
describe('A server that a slot moves away from while the keys of a lock are still there', () => {
  const stage = useCluster();
  const record = `reenlock:{${key}}:lock`;
  let client: Cluster;
  beforeEach(async () => {
    client = await stage.connect();
    stage.store = new RedisStore({ client });
  });
  afterEach(async () => {
    await stage.end();
    client.disconnect();
  });

  const elapse = (ms: number) => elapseOnRedis(ms, () => stage.cluster.call(stage.cluster.servers[0]!, 'TIME'));

  let newLine: Line;
  const add = (line: Line): Line => {
    newLine = line;
    return line;
  };

  /** Until nobody holds, a lock keeps the keys of several holds. A release that came before its acquire makes one more. */
  async function useAllKeys(process: Process): Promise<void> {
    const inner = process.line('holder');
    await inner.hold();
    await inner.release();
    await process.line().release(longMs);
  }

  const release = ({ holder }: Play) => holder.release(longMs);
  const giveUp = ({ waiters }: Play) => waiters[0]!.release(longMs);
  const force = ({ fence }: Play) => stage.store.forceRelease(key, fence);
  const renew = ({ holder, fence }: Play) => holder.renew(fence, 2 * longMs);
  const reenter = ({ process }: Play) => add(process.line('holder')).ask();
  const queue = ({ process }: Play) => add(process.line()).ask();
  const poll = ({ waiters }: Play) => waiters[0]!.ask({ livenessMs: 2 * longMs });
  const [released, cancelled] = [{ status: 'released' }, { status: 'cancelled' }];
  const [entered, added] = [
    { status: 'granted', grant: { otherHolds: 1 } },
    { status: 'queued', isNew: true, position: 2 },
  ];

  const steps: readonly Step[] = [
    ['a renewal', '2 writers', renew, { status: 'renewed' }, [0], [1, 2]],
    ['re-entry from another scope', '2 writers', reenter, entered, [0, 'new'], [1, 2]],
    ['one more waiter', '2 writers', queue, added, [0], [1, 2, 'new']],
    ['a poll', '2 writers', poll, { status: 'queued', isNew: false }, [0], [1, 2]],
    ['a waiter that gives up', '2 writers', giveUp, cancelled, [0], [2]],
    ['the last waiter that gives up', '1 writer', giveUp, cancelled, [0], []],
    ['a hand-over', '2 writers', release, released, [1], [2]],
    ['a hand-over to the last waiter', '1 writer', release, released, [1], []],
    ['a hand-over to the last waiter, who reads', '1 reader', release, released, [1], []],
    ['a hand-over to readers in a row, for whom the holds are emptied,', '2 readers', release, released, [1, 2], []],
    ['a forced release, with readers in a row next,', '2 readers', force, true, [1, 2], []],
    ['a remembered release', '2 writers', ({ holder }) => holder.copy.release(longMs), released, [1], [2]],
    ['a forced release', '2 writers', force, true, [1], [2]],
  ];

  it.each(steps)('%s works as elsewhere, with %s in the queue', async (_, those, call, reply, holds, left) => {
    const [process, other] = [await stage.process(), await stage.process()];
    const holder = process.line('holder', { claimMs: longMs });
    const { fence } = await holder.hold();
    await useAllKeys(process);
    const mode: LockMode = those.includes('read') ? 'read' : 'write';
    const waiters = [await other.line(undefined, { mode }).wait()];
    if (those.startsWith('2')) waiters.push(await process.line(undefined, { mode }).wait());
    const play = { holder, waiters, process, fence };
    await stage.cluster.moveSlot(record, await stage.elsewhere(record), async () => {
      const answer = await call(play);
      expect({ answer }).toMatchObject({ answer: reply });
    });
    const idOf = (who: number | 'new'): string => (who === 'new' ? newLine : [holder, ...waiters][who]!).holdId;
    expect(await stage.order()).toEqual({ holds: holds.map(idOf), waiters: left.map(idOf) });
  });

  it('An edge is set and cleared, even if all before it have expired', async () => {
    const edges = stage.store.edges!;
    const edgeOf = ({ request }: Line): WaitEdge => ({ request, traceId: 'trace', key });
    const process = stage.deafProcess();
    const [long, short, next] = [edgeOf(process.line()), edgeOf(process.line()), edgeOf(process.line())];
    const name = 'reenlock:{owner}:edges';
    await edges.set('owner', long, longMs);
    await edges.set('owner', short, shortMs);
    await edges.clear('owner', long);
    await elapse(shortMs);
    await stage.cluster.moveSlot(name, await stage.elsewhere(name), () => edges.set('owner', next, longMs));
    expect(await edges.of('owner')).toEqual([next]);
    await edges.set('owner', short, 1);
    await elapse(1);
    await stage.cluster.moveSlot(name, await stage.elsewhere(name), () => edges.clear('owner', next));
    expect(await edges.of('owner')).toEqual([]);
  });
});
