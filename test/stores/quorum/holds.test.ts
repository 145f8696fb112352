import { LockConfigError, LockStoreError } from 'reenlock';
import { QuorumStore } from 'reenlock/redis';
import { MemoryStore } from '../../../src/core/memory/memory-store.ts';
import type { StoreMessage } from '../../../src/core/model/store.ts';
import { longMs } from '../../../src/testing/contract/harness.ts';
import type { Line } from '../../../src/testing/contract/stage.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { FakeStore } from '../../support/stores/fake-store.ts';
import { answersOf, fenceOf, putOn, QuorumStage } from '../../support/stores/quorum-stage.ts';
import { outcomeOf } from '../../support/stores/set-up.ts';

const nodeTimeoutMs = 250;
const down = { kind: 'rejected', error: new Error('ECONNREFUSED') } as const;
const dead = { kind: 'lostCall' } as const;

/** A hold on three nodes, in a process that hears no messages. */
async function held(terms?: Parameters<Line['hold']>[0]) {
  const stage = new QuorumStage(3);
  const line = stage.deafProcess().line();
  return { stage, line, ...(await line.hold(terms)) };
}

describe('A release on a quorum', () => {
  it('A release continues at the node that did not reply, until it does', async () => {
    const { stage, line } = await held();
    stage.nodes[0]!.next('release', dead, down, dead);
    const outcome = outcomeOf(line.release(longMs));
    await stage.clock.advance(nodeTimeoutMs / 10);
    expect(outcome.value?.status).toBe('released');
    expect(await stage.copies()).toBe(1);
    await stage.clock.advance(2_000);
    expect(await stage.copies()).toBe(0);
    expect(stage.nodes[0]!.count('release')).toBe(4);
  });

  it('A release continues at no node that has responded, even if too late for a call', async () => {
    const { stage, line } = await held();
    const slow = stage.nodes[0]!;
    slow.always('release', { kind: 'lateReply', ms: nodeTimeoutMs + 10 });
    const outcome = outcomeOf(line.release());
    await stage.clock.advance(nodeTimeoutMs + 10);
    expect(outcome.value?.status).toBe('released');
    expect(stage.clock.timerCount).toBe(0);
    expect(slow.count('release')).toBe(1);
  });

  it('A release ends with the lease, when nothing can be left', async () => {
    const { stage, line } = await held({ leaseMs: 1_000 });
    stage.nodes[0]!.always('release', down);
    await line.release();
    await stage.clock.advance(1_000);
    expect(stage.clock.timerCount).toBe(0);
    const tries = stage.nodes[0]!.count('release');
    expect(tries).toBeGreaterThan(2);
    await stage.clock.advance(60_000);
    expect(stage.nodes[0]!.count('release')).toBe(tries);
  });

  it.each<[string, (line: Line) => Promise<unknown>]>([
    [
      'the lease that it was last renewed to',
      async (line) => line.renew((await line.hold({ leaseMs: 1_000 })).fence, 20_000),
    ],
    [
      'the longest lease that was asked for',
      async (line) => {
        await line.hold({ leaseMs: 20_000 });
        await line.hold({ leaseMs: 1_000 });
      },
    ],
  ])('A release continues for as long as %s', async (_, hold) => {
    const stage = new QuorumStage(3);
    const line = stage.deafProcess().line();
    await hold(line);
    stage.nodes[0]!.always('release', down);
    await line.release();
    await stage.clock.advance(10_000);
    stage.nodes[0]!.heal();
    await stage.clock.advance(9_000);
    expect(await stage.copies()).toBe(0);
  });

  it('A release goes to each node again if the hold was acquired again since', async () => {
    const { stage, line } = await held();
    for (const node of stage.nodes.slice(1)) node.always('release', down);
    // The first node has released it, and said so.
    await expect(line.release()).rejects.toBeInstanceOf(LockStoreError);
    for (const node of stage.nodes) node.heal();
    await line.hold();
    expect(await stage.copies()).toBe(3);
    expect((await line.release()).status).toBe('released');
    await stage.clock.advance(nodeTimeoutMs);
    expect(await stage.copies()).toBe(0);
  });

  it('A release without replies of a quorum fails, and leaves the next try to its caller', async () => {
    const { stage, line } = await held();
    for (const node of stage.nodes.slice(0, 2)) node.always('release', down);
    const outcome = await stage.clock.settled(outcomeOf(line.release()));
    expect(outcome.error).toMatchObject({ outcome: 'unknown' });
    expect(answersOf(outcome)).toEqual(['unreachable', 'unreachable', 'replied']);
    expect(stage.clock.timerCount).toBe(0);
    expect(stage.nodes.map((node) => node.count('release'))).toEqual([1, 1, 1]);
    for (const node of stage.nodes) node.heal();
    expect((await line.release()).status).toBe('released');
    expect(await stage.copies()).toBe(0);
    // Nothing is on its way any more: every node can be asked again.
    await line.hold();
    expect(await stage.copies()).toBe(3);
  });

  it('A release is tried again after pauses that double, up to ten seconds, and once if it is called twice', async () => {
    const stage = new QuorumStage(3);
    stage.clock.nextJitter = 0.1;
    const line = stage.deafProcess().line();
    await line.hold();
    const node = stage.nodes[0]!;
    node.always('release', down);
    await line.release();
    await line.release();
    await stage.clock.advance(24_000);
    const times = node.calls.filter(({ operation }) => operation === 'release').map(({ atMs }) => atMs);
    const pausesMs = times.slice(1).map((ms, index) => ms - times[index]!);
    expect(pausesMs).toEqual([0, 30, 60, 120, 240, 480, 960, 1_920, 3_840, 6_000, 6_000]);
    node.heal();
    await stage.clock.advance(longMs);
  });

  it('A release continues even if only its caller knows of the hold', async () => {
    const stage = new QuorumStage(3);
    const { request } = stage.deafProcess().line();
    await stage.store.acquire(request, { leaseMs: longMs, queue: false, maxWaiters: 1, livenessMs: longMs });
    stage.nodes[0]!.next('release', down);
    const { status } = await stage.another().release({ ...request }, { tombstoneMs: 1_000 });
    await stage.clock.advance(1_000);
    expect([status, await stage.copies()]).toEqual(['released', 0]);
  });

  it.each([
    ['released', longMs],
    ['expired', 1_000],
  ])('A release is %s if a quorum of the nodes replied that, even to different tries', async (status, leaseMs) => {
    const { stage, line } = await held({ leaseMs });
    await stage.clock.advance(1_000);
    for (const node of stage.nodes.slice(1)) node.next('release', down);
    await expect(line.release()).rejects.toMatchObject({ outcome: 'unknown' });
    stage.nodes[2]!.next('release', down);
    expect((await line.release()).status).toBe(status);
    await stage.clock.advance(longMs);
  });

  it.each([
    ['released', longMs, 'expired'],
    ['expired', 10, 'absent'],
  ])(
    'A release is %s with a lease of %i ms if the last deciding node replied that, although the first replied %s',
    async (status, leaseMs, first) => {
      const stage = new QuorumStage(3);
      const line = stage.deafProcess().line();
      const node = stage.nodes[0]!;
      await line.hold({ leaseMs });
      await node.forget();
      const terms = { leaseMs: 10, queue: false, maxWaiters: 1, livenessMs: longMs };
      if (first === 'expired') await node.acquire(line.request, terms);
      await stage.clock.advance(10);
      stage.nodes[2]!.next('release', { kind: 'lateReply', ms: 100 });
      const outcome = outcomeOf(line.release());
      await stage.clock.advance(100);
      expect(outcome.value?.status).toBe(status);
    },
  );

  it('A release is unknown if every node refused it, and one was called again before the last had responded', async () => {
    const { stage, line } = await held();
    const refusal = new LockStoreError('The lock store replied READONLY', { outcome: 'not-applied' });
    stage.nodes[0]!.next('release', { kind: 'rejected', error: refusal });
    for (const node of stage.nodes.slice(1)) {
      node.release = () => new Promise((_, reject) => void stage.clock.after(100, () => reject(refusal)));
    }
    const outcome = outcomeOf(line.release());
    await stage.clock.advance(nodeTimeoutMs);
    expect(answersOf(outcome)).toEqual(['failed', 'failed', 'failed']);
    expect(await stage.copies()).toBe(2);
    expect(outcome.error).toMatchObject({ outcome: 'unknown' });
  });

  it('A release is unknown if the only other node that had the hold does not respond', async () => {
    const stage = new QuorumStage(3);
    stage.nodes[2]!.next('acquire', down);
    const line = stage.deafProcess().line();
    await line.hold({ leaseMs: 1_000 });
    stage.nodes[1]!.always('release', down);
    const outcome = outcomeOf(line.release());
    await stage.clock.advance(nodeTimeoutMs);
    expect(outcome.error).toMatchObject({ outcome: 'unknown' });
  });

  it('A release of one try takes nothing from the next try if a copy of it is late', async () => {
    const stage = new QuorumStage(3);
    await putOn(stage.nodes.slice(1), 'another', 10);
    const line = stage.deafProcess().line();
    stage.nodes[0]!.next('release', { kind: 'duplicate', ms: 100 });
    stage.clock.nextJitter = 0.9;
    stage.nodes[2]!.next('acquire', { kind: 'lateCall', ms: 0 }, down);
    const outcome = outcomeOf(line.ask());
    await stage.clock.advance(50);
    const fence = fenceOf(outcome);
    expect(stage.nodes.map((node) => node.count('release'))).toEqual([1, 0, 0]);
    await stage.clock.advance(100);
    expect((await stage.nodes[0]!.inspect('order:42')).holds).toMatchObject([{ fence }]);
    const other = outcomeOf(stage.deafProcess().line().try());
    await stage.clock.advance(nodeTimeoutMs);
    expect(other.value?.status).toBe('refused');
    expect((await stage.inspect()).holds).toMatchObject([{ holdId: line.holdId, fence }]);
    expect((await line.renew(fence)).status).toBe('renewed');
    expect((await line.release()).status).toBe('released');
    expect(await stage.copies()).toBe(0);
  });

  it('A release is made again if the acquire reaches a node so late that the first one is forgotten there', async () => {
    const stage = new QuorumStage(3);
    await putOn(stage.nodes.slice(1), 'another');
    const slow = stage.nodes[0]!;
    slow.next('acquire', { kind: 'lateCall', ms: 5_000 });
    const outcome = outcomeOf(stage.deafProcess().line().ask({ queue: false, leaseMs: 1_000 }));
    await stage.clock.advance(nodeTimeoutMs + 1);
    expect(outcome.value?.status).toBe('refused');
    expect(slow.count('release')).toBe(1);
    await stage.clock.advance(5_000 - nodeTimeoutMs);
    expect(slow.count('release')).toBe(2);
    expect((await slow.inspect('order:42')).holds).toEqual([]);
  });

  it('A failed acquire is released on the nodes that did not reply, until they do', async () => {
    const stage = new QuorumStage(5);
    for (const node of stage.nodes.slice(0, 3)) {
      node.next('acquire', { kind: 'lostReply' });
      node.next('release', dead, down);
    }
    const outcome = outcomeOf(stage.deafProcess().line().ask());
    await stage.clock.advance(nodeTimeoutMs + 1);
    expect(answersOf(outcome)).toEqual(['timeout', 'timeout', 'timeout', 'granted', 'granted']);
    expect(await stage.copies()).toBe(3);
    await stage.clock.advance(2_000);
    expect(await stage.copies()).toBe(0);
  });
});

describe('A renewal on a quorum', () => {
  it.each([
    [3, 1],
    [5, 2],
  ])('A renewal on %i nodes goes on while %i are dead', async (count, dying) => {
    const stage = new QuorumStage(count);
    const line = stage.deafProcess().line();
    const { fence, endMs } = await line.hold();
    for (const node of stage.nodes.slice(0, dying)) node.always('renew', dead);
    await stage.clock.advance(1_000);
    const outcome = outcomeOf(line.renew(fence));
    await stage.clock.advance(nodeTimeoutMs);
    expect(outcome.value).toMatchObject({ status: 'renewed', endMs: endMs + 1_000 });
  });

  it('A renewal lasts until the first lease of the required nodes ends, if another is dead', async () => {
    const { stage, line, fence } = await held({ leaseMs: 1_000 });
    stage.nodes[0]!.next('renew', down);
    await line.renew(fence, 60_000);
    stage.nodes[2]!.always('renew', down);
    const renewed = await line.renew(fence, 2_000);
    expect(renewed.status === 'renewed' && renewed.endMs - renewed.nowMs).toBe(2_000);
  });

  it('A renewal waits for as many nodes as are required, even if they are slow', async () => {
    const { stage, line, fence } = await held();
    for (const node of stage.nodes.slice(1)) node.next('renew', { kind: 'lateReply', ms: 100 });
    const outcome = outcomeOf(line.renew(fence));
    await stage.clock.advance(100);
    expect(outcome.value?.status).toBe('renewed');
  });

  it.each([
    ['one node lost it and another does not respond', 1],
    ['the required nodes do not reply', 0],
  ])('A renewal fails, and is not lost, if %s', async (_, lost) => {
    const { stage, line, fence } = await held();
    if (lost > 0) await stage.nodes[0]!.forget();
    for (const node of stage.nodes.slice(lost, 2)) node.next('renew', down);
    const outcome = outcomeOf(line.renew(fence));
    await stage.clock.advance(nodeTimeoutMs);
    expect(outcome.error).toMatchObject({ outcome: 'unknown' });
    expect((await line.renew(fence)).status).toBe('renewed');
  });

  it('A renewal is lost if a quorum of nodes lost it, even if one has it', async () => {
    const { stage, line, fence } = await held();
    for (const node of stage.nodes.slice(0, 2)) await node.forget();
    expect(await line.renew(fence)).toEqual({ status: 'lost' });
  });
});

describe('An inspection of a quorum', () => {
  it('An inspection reports a hold that may stand on a quorum, counting the silent nodes for it, and no other', async () => {
    const { stage, line } = await held();
    await stage.nodes[0]!.forget();
    stage.nodes[1]!.next('inspect', down);
    const seen = outcomeOf(stage.inspect());
    await stage.clock.advance(nodeTimeoutMs);
    expect(seen.value?.holds).toMatchObject([{ holdId: line.holdId }]);
    await stage.nodes[1]!.forget();
    expect((await stage.inspect()).holds).toEqual([]);
  });

  it('A force release takes a hold from each node, even if it has another fence there, and the holder learns of it', async () => {
    const stage = new QuorumStage(3);
    stage.nodes[2]!.next('acquire', down);
    await stage.deafProcess().line('owner').hold();
    await stage.clock.advance(1_000);
    // At re-entry the third node, which lacks the outer hold, makes a fence; then the first one loses its data.
    const process = await stage.process();
    const inner = process.line('owner');
    const { fence } = await inner.hold();
    await stage.nodes[0]!.forget();
    expect((await inner.renew(fence)).status).toBe('renewed');
    expect(await stage.store.forceRelease('order:42', fence)).toBe(true);
    expect(await stage.copies()).toBe(0);
    await stage.clock.settle();
    expect(process.messages).toEqual([{ kind: 'lost', holdId: inner.holdId }]);
    expect(await inner.renew(fence)).toEqual({ status: 'lost' });
    await stage.end();
  });

  it.each<[string, (stage: QuorumStage, fence: number) => Promise<unknown>]>([
    ['An inspection', async (stage) => (await stage.inspect()).holds.length === 1],
    ['A forced release', (stage, fence) => stage.store.forceRelease('order:42', fence)],
  ])('%s waits for as many nodes as are required, even if they are slow and another is down', async (_, call) => {
    const { stage, fence } = await held();
    for (const operation of ['inspect', 'forceRelease'] as const) {
      stage.nodes[0]!.always(operation, down);
      for (const node of stage.nodes.slice(1)) node.always(operation, { kind: 'lateReply', ms: 100 });
    }
    const outcome = outcomeOf(call(stage, fence));
    await stage.clock.advance(2 * nodeTimeoutMs);
    expect(outcome.value).toBe(true);
  });

  it('An inspection without a quorum fails, and so does a forced release', async () => {
    const stage = new QuorumStage(3);
    const { fence } = await stage.deafProcess().line().hold();
    for (const node of stage.nodes.slice(0, 2)) {
      node.always('inspect', down);
      node.always('forceRelease', down);
    }
    for (const call of [stage.inspect(), stage.store.forceRelease('order:42', fence)]) {
      const outcome = outcomeOf<unknown>(call);
      await stage.clock.advance(nodeTimeoutMs);
      expect(answersOf(outcome)).toEqual(['unreachable', 'unreachable', 'replied']);
    }
  });
});

describe('The stream of a quorum', () => {
  async function hearing(stage: QuorumStage) {
    const messages: StoreMessage[] = [];
    const process = stage.deafProcess();
    const end = await stage.store.subscribe(process.name, (message) => messages.push(message), { freed: true });
    return { process, messages, end };
  }

  it('The stream wakes every process at a release, and never for a mere try', async () => {
    const stage = new QuorumStage(3);
    const { messages, end } = await hearing(stage);
    const line = stage.deafProcess().line();
    await line.hold();
    expect((await stage.deafProcess().line().try()).status).toBe('refused');
    expect(messages).toEqual([]);
    await line.release();
    await stage.clock.settle();
    expect(messages).toContainEqual({ kind: 'freed', id: 'order:42' });
    await end();
  });

  it('The stream carries no grant, since nothing is queued on a node, and nothing after its end', async () => {
    const stage = new QuorumStage(3);
    const listeners: ((message: StoreMessage) => void)[] = [];
    for (const node of stage.nodes) {
      node.subscribe = async (_, listener) => {
        listeners.push(listener);
        return async () => {};
      };
    }
    const { messages, end } = await hearing(stage);
    const tell = (message: StoreMessage): void => {
      for (const listener of listeners) listener(message);
    };
    tell({ kind: 'granted', grant: { holdId: 'hold', fence: 1, endMs: 1, isClaim: true } });
    expect(messages).toEqual([]);
    tell({ kind: 'freed', id: 'order:42' });
    expect(messages).toHaveLength(3);
    await end();
    tell({ kind: 'freed', id: 'order:42' });
    expect(messages).toHaveLength(3);
  });

  it('The stream reports a loss once, and not before a quorum of nodes said so', async () => {
    const stage = new QuorumStage(3);
    const { process, messages, end } = await hearing(stage);
    const line = process.line();
    const { fence } = await line.hold();
    await stage.nodes[0]!.forceRelease('order:42', fence);
    await stage.clock.settle();
    expect(messages).toEqual([]);
    expect((await line.renew(fence)).status).toBe('renewed');
    for (const node of stage.nodes.slice(1)) await node.forceRelease('order:42', fence);
    await stage.clock.settle();
    expect(messages).toEqual([{ kind: 'lost', holdId: line.holdId }]);
    await end();
  });

  it('The stream reports the loss of a hold that took two tries by its own id', async () => {
    const stage = new QuorumStage(3);
    const { process, messages, end } = await hearing(stage);
    await putOn(stage.nodes.slice(0, 1), 'one', 5);
    await putOn(stage.nodes.slice(1, 2), 'two', 5);
    const line = process.line();
    const outcome = outcomeOf(line.ask());
    await stage.clock.advance(nodeTimeoutMs);
    expect(stage.nodes[2]!.count('acquire')).toBe(2);
    expect(await stage.store.forceRelease('order:42', fenceOf(outcome))).toBe(true);
    await stage.clock.settle();
    expect(messages).toEqual([{ kind: 'lost', holdId: line.holdId }]);
    await end();
  });

  it('The stream is in force with a quorum of the nodes, and a node that joins after its end is unsubscribed, too', async () => {
    const stage = new QuorumStage(3);
    const open = stage.nodes[0]!.gate('subscribe');
    const { messages, end } = await hearing(stage);
    await end();
    open();
    await stage.clock.settle();
    for (const node of stage.nodes) node.broadcast({ kind: 'resubscribed' });
    expect(messages).toEqual([]);
  });

  it('The stream is not in force with one node', async () => {
    const stage = new QuorumStage(3);
    for (const node of stage.nodes.slice(1)) node.next('subscribe', { kind: 'lateCall', ms: 100 });
    const outcome = outcomeOf(hearing(stage));
    await stage.clock.advance(50);
    expect(outcome.value).toBeUndefined();
    await stage.clock.advance(50);
    expect(outcome.value).toBeDefined();
  });

  it('A stream that too few nodes accept is an error, and ends at the others', async () => {
    const stage = new QuorumStage(3);
    for (const node of stage.nodes.slice(0, 2)) node.next('subscribe', down);
    const outcome = await stage.clock.settled(outcomeOf(hearing(stage)));
    expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_STORE' });
    const heard: StoreMessage[] = [];
    stage.nodes[2]!.onMessage = (message) => heard.push(message);
    stage.nodes[2]!.broadcast({ kind: 'resubscribed' });
    expect(heard).toEqual([]);
  });

  it('The stream reports a failed node alongside a quorum, subscribes again, and gets its messages from then on', async () => {
    const stage = new QuorumStage(3);
    for (const fault of [down, down]) stage.nodes[1]!.next('subscribe', fault);
    const { messages, end } = await hearing(stage);
    const fault = { kind: 'fault', error: down.error };
    await stage.clock.settle();
    expect(messages).toEqual([fault]);
    await stage.clock.advance(1_000);
    expect(messages).toEqual([fault, fault]);
    await stage.clock.advance(1_000);
    stage.nodes[1]!.broadcast({ kind: 'resubscribed' });
    await stage.clock.settle();
    expect(messages).toEqual([fault, fault, { kind: 'resubscribed' }]);
    expect(stage.clock.timerCount).toBe(0);
    await end();
    stage.nodes[1]!.broadcast({ kind: 'resubscribed' });
    await stage.clock.settle();
    expect(messages).toHaveLength(3);
  });

  it('The stream does not call a node again that fails after its end, and reports no fault then', async () => {
    const stage = new QuorumStage(3);
    let fail = (_: Error): void => {};
    stage.nodes[1]!.subscribe = () => new Promise((_, reject) => (fail = reject));
    const { messages, end } = await hearing(stage);
    await end();
    fail(down.error);
    await stage.clock.settle();
    expect(messages).toEqual([]);
    expect(stage.clock.timerCount).toBe(0);
  });

  it('The stream calls no node again once it has ended', async () => {
    const stage = new QuorumStage(3);
    stage.nodes[1]!.always('subscribe', down);
    const { end } = await hearing(stage);
    await stage.clock.settle();
    await end();
    expect(stage.clock.timerCount).toBe(0);
  });
});

describe('A node that restarted', () => {
  class AgedStore extends FakeStore {
    uptime: () => Promise<number> = async () => Number.POSITIVE_INFINITY;

    uptimeMs(): Promise<number> {
      return this.uptime();
    }
  }

  function aged(maxLeaseMs = 10_000) {
    const clock = new ManualClock();
    const nodes = [1, 2, 3].map(() => new AgedStore(clock));
    const stage = new QuorumStage(3);
    stage.store = new QuorumStore({ stores: nodes, maxLeaseMs }, clock);
    const restart = async (index: number): Promise<void> => {
      const since = clock.now().monoMs;
      await nodes[index]!.forget();
      nodes[index]!.uptime = async () => clock.now().monoMs - since;
    };
    return { clock, nodes, stage, restart };
  }

  it('A node that restarted within a lease can’t help a second owner in until no such lease can be left', async () => {
    const { clock, stage, nodes, restart } = aged();
    const first = stage.deafProcess().line();
    nodes[2]!.next('acquire', down);
    await first.hold({ leaseMs: 10_000 });
    await restart(1);
    // The second node has forgotten the hold, and the third never had it: two of three would grant.
    const second = stage.deafProcess().line();
    const outcome = outcomeOf(second.ask({ queue: false, leaseMs: 10_000 }));
    await clock.advance(nodeTimeoutMs);
    expect(outcome.value?.status).toBe('refused');
    for (const node of nodes.slice(1)) expect((await node.inspect('order:42')).holds).toEqual([]);
    await clock.advance(10_200);
    expect((await second.ask({ queue: false, leaseMs: 10_000 })).status).toBe('granted');
  });

  it('A node that restarted does not count before its uptime, less the drift, exceeds the longest lease', async () => {
    const { clock, stage, nodes, restart } = aged(10_000);
    await restart(0);
    nodes[2]!.always('acquire', down);
    for (const [ms, isGranted] of [
      [10_102, false],
      [1, true],
    ] as const) {
      await clock.advance(ms);
      const outcome = await clock.settled(outcomeOf(stage.deafProcess().line().ask({ queue: false, leaseMs: 1_000 })));
      expect([ms, outcome.value?.status === 'granted']).toEqual([ms, isGranted]);
    }
    await clock.advance(longMs);
  });

  it('A node whose uptime can’t be learned does not count, and its grant is released', async () => {
    const { clock, stage, nodes } = aged();
    for (const node of nodes.slice(0, 2)) node.uptime = () => Promise.reject(new Error('NOPERM'));
    const outcome = outcomeOf(stage.deafProcess().line().ask({ leaseMs: 1_000 }));
    await clock.advance(nodeTimeoutMs);
    expect(answersOf(outcome)).toEqual(['unreachable', 'unreachable', 'granted']);
    await clock.advance(2_000);
    for (const node of nodes) expect((await node.inspect('order:42')).holds).toEqual([]);
  });

  it('The store allows no lease longer than `maxLeaseMs`, because of nodes that restart', () => {
    expect(aged(10_000).stage.store.capabilities.maxLeaseMs).toBe(10_000);
  });
});

describe('The options of QuorumStore', () => {
  const store = () => new MemoryStore();
  const twice = store();
  const { capabilities } = store();
  const unfit = Object.assign(store(), { capabilities: { ...capabilities, minFence: undefined } });

  it.each([
    ['fewer than three stores', [store(), store()]],
    ['one store twice', [twice, twice, store()]],
    ['a store that does not heed `minFence`', [store(), store(), unfit]],
    ['something that is no store', [store(), store(), {}]],
    ['nothing', undefined],
  ])('The options refuse %s', (_, stores) => {
    expect(() => new QuorumStore({ stores } as never)).toThrow(LockConfigError);
  });

  it('Three stores are enough, and locks of memory stores exclude no other process', () => {
    const quorum = new QuorumStore({ stores: [store(), store(), store()] });
    expect(quorum.capabilities).toMatchObject({ queue: false, handOff: false, shared: false });
  });

  it('Locks exclude other processes if each of their stores does', () => {
    const sharing = (shared: boolean) => {
      const each = store();
      return Object.assign(each, { capabilities: { ...each.capabilities, shared } });
    };
    for (const kinds of [
      [true, true, true],
      [true, true, false],
    ]) {
      const quorum = new QuorumStore({ stores: kinds.map(sharing) });
      expect(quorum.capabilities.shared).toBe(kinds.every(Boolean));
    }
  });
});
