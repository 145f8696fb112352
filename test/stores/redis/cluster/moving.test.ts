import type { Cluster } from 'ioredis';
import type { WaitEdge } from '../../../../src/core/model/store.ts';
import { RedisStore } from '../../../../src/stores/redis/redis-store.ts';
import { longMs, shortMs } from '../../../../src/testing/contract/harness.ts';
import { key, type Line, type Process } from '../../../../src/testing/contract/stage.ts';
import { useCluster } from '../../../support/redis/cluster-stage.ts';
import { until } from '../../../support/until.ts';

jest.setTimeout(60_000);

/** A lock with one hold and some who wait, in the order in which they came, and what is done to it. */
interface Play {
  readonly holder: Line;
  readonly waiters: readonly Line[];
  readonly process: Process;
  readonly fence: number;
}

interface Step {
  readonly name: string;
  readonly waiters: number;
  readonly isReader?: true;
  readonly call: (play: Play) => Promise<unknown>;
  readonly reply: unknown;
  /** Who holds and who waits then: the holder is 0, the waiters follow, a new line is 'new'. */
  readonly holds: readonly (number | 'new')[];
  readonly left: readonly (number | 'new')[];
}

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

  const elapse = async (ms: number): Promise<void> => {
    const nowMs = async (): Promise<number> => {
      const [seconds, micros] = (await stage.cluster.call(stage.cluster.servers[0]!, 'TIME')) as [string, string];
      return Number(seconds) * 1000 + Number(micros) / 1000;
    };
    const overMs = (await nowMs()) + ms + 1;
    await until(async () => (await nowMs()) > overMs);
  };
  const added = { line: undefined as Line | undefined };
  const add = (line: Line): Line => {
    added.line = line;
    return line;
  };

  /** Until nobody holds, a lock keeps the keys of several holds. A release that came before its acquire makes one more. */
  async function useAllKeys(process: Process): Promise<void> {
    const inner = process.line('holder');
    await inner.hold();
    await inner.release();
    await process.line().release(longMs);
  }

  const steps: readonly Step[] = [
    {
      name: 'a renewal',
      waiters: 2,
      call: ({ holder, fence }) => holder.renew(fence, 2 * longMs),
      reply: { status: 'renewed' },
      holds: [0],
      left: [1, 2],
    },
    {
      name: 're-entry from another scope',
      waiters: 2,
      call: ({ process }) => add(process.line('holder')).ask(),
      reply: { status: 'granted', grant: { otherHolds: 1 } },
      holds: [0, 'new'],
      left: [1, 2],
    },
    {
      name: 'one more waiter',
      waiters: 2,
      call: ({ process }) => add(process.line()).ask(),
      reply: { status: 'queued', isNew: true, position: 2 },
      holds: [0],
      left: [1, 2, 'new'],
    },
    {
      name: 'a poll',
      waiters: 2,
      call: ({ waiters }) => waiters[0]!.ask({ livenessMs: 2 * longMs }),
      reply: { status: 'queued', isNew: false },
      holds: [0],
      left: [1, 2],
    },
    {
      name: 'a waiter that gives up',
      waiters: 2,
      call: ({ waiters }) => waiters[0]!.release(longMs),
      reply: { status: 'cancelled' },
      holds: [0],
      left: [2],
    },
    {
      name: 'the last waiter that gives up',
      waiters: 1,
      call: ({ waiters }) => waiters[0]!.release(longMs),
      reply: { status: 'cancelled' },
      holds: [0],
      left: [],
    },
    {
      name: 'a hand-over',
      waiters: 2,
      call: ({ holder }) => holder.release(longMs),
      reply: { status: 'released' },
      holds: [1],
      left: [2],
    },
    {
      name: 'a hand-over to the last waiter',
      waiters: 1,
      call: ({ holder }) => holder.release(longMs),
      reply: { status: 'released' },
      holds: [1],
      left: [],
    },
    {
      name: 'a hand-over to the last waiter, who reads',
      waiters: 1,
      isReader: true,
      call: ({ holder }) => holder.release(longMs),
      reply: { status: 'released' },
      holds: [1],
      left: [],
    },
    {
      name: 'a hand-over to readers in a row, for whom the holds are emptied and filled again,',
      waiters: 2,
      isReader: true,
      call: ({ holder }) => holder.release(longMs),
      reply: { status: 'released' },
      holds: [1, 2],
      left: [],
    },
    {
      name: 'a forced release, with readers in a row next,',
      waiters: 2,
      isReader: true,
      call: ({ fence }) => stage.store.forceRelease(key, fence),
      reply: true,
      holds: [1, 2],
      left: [],
    },
    {
      name: 'a hand-over by a release that is remembered',
      waiters: 2,
      call: ({ holder }) => holder.copy.release(longMs),
      reply: { status: 'released' },
      holds: [1],
      left: [2],
    },
    {
      name: 'a forced release',
      waiters: 2,
      call: ({ fence }) => stage.store.forceRelease(key, fence),
      reply: true,
      holds: [1],
      left: [2],
    },
  ];

  it.each(steps)('$name works as elsewhere', async ({ waiters: count, isReader, call, reply, holds, left }) => {
    const [process, other] = [await stage.process(), await stage.process()];
    const holder = process.line('holder', { claimMs: longMs });
    const { fence } = await holder.hold();
    await useAllKeys(process);
    const mode = isReader ? 'read' : 'write';
    const first = await other.line(undefined, { mode }).wait();
    const waiters = count === 1 ? [first] : [first, await process.line(undefined, { mode }).wait()];
    const play = { holder, waiters, process, fence };
    await stage.cluster.moveSlot(record, await stage.elsewhere(record), async () => {
      const answer = await call(play);
      if (typeof reply === 'object') expect(answer).toMatchObject(reply as object);
      else expect(answer).toBe(reply);
    });
    const idOf = (who: number | 'new'): string => (who === 'new' ? added.line! : [holder, ...waiters][who]!).holdId;
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
