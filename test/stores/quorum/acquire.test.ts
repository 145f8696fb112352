import { LockStoreError } from 'reenlock';
import { QuorumStore } from 'reenlock/redis';
import type { Clock } from '../../../src/core/base/clock.ts';
import type { AcquireReply } from '../../../src/core/model/store.ts';
import { longMs } from '../../../src/testing/contract/harness.ts';
import type { Line } from '../../../src/testing/contract/stage.ts';
import { FakeStore, type Fault } from '../../support/stores/fake-store.ts';
import { answersOf, fenceOf, putOn, QuorumStage } from '../../support/stores/quorum-stage.ts';
import { outcomeOf } from '../../support/stores/set-up.ts';

const dead: Fault = { kind: 'lostCall' };
const down: Fault = { kind: 'rejected', error: new Error('ECONNREFUSED 127.0.0.1:6379') };
const readOnly: Fault = {
  kind: 'rejected',
  error: new LockStoreError('The lock store replied READONLY', { outcome: 'not-applied' }),
};
const nodeTimeoutMs = 250;

/** Asks, while more time passes than the nodes have. */
async function asked(stage: QuorumStage, line: Line, leaseMs = longMs) {
  const outcome = outcomeOf(line.ask({ queue: false, leaseMs }));
  await stage.clock.advance(3 * nodeTimeoutMs);
  return outcome;
}

/** What the store says is left of a lease that was granted. */
function leftMs({ value }: ReturnType<typeof outcomeOf<AcquireReply>>): number | undefined {
  return value?.status === 'granted' ? value.grant.endMs - value.nowMs : undefined;
}

describe('An acquire on a quorum', () => {
  it.each([
    [3, 1],
    [4, 1],
    [5, 2],
    [7, 3],
  ])('An acquire on %i nodes is granted while %i are dead', async (count, dying) => {
    const stage = new QuorumStage(count);
    for (const node of stage.nodes.slice(0, dying)) node.always('acquire', dead);
    expect((await asked(stage, stage.deafProcess().line())).value?.status).toBe('granted');
    await stage.clock.advance(longMs);
  });

  it.each([
    [3, 2],
    [4, 2],
    [5, 3],
    [7, 4],
  ])(
    'An acquire on %i nodes fails while %i are dead, reports that, and leaves nothing on the living ones',
    async (count, dying) => {
      const stage = new QuorumStage(count);
      for (const node of stage.nodes.slice(0, dying)) node.always('acquire', dead);
      const outcome = outcomeOf(stage.deafProcess().line().ask());
      await stage.clock.advance(nodeTimeoutMs + 1);
      expect(outcome.error).toBeInstanceOf(LockStoreError);
      expect(outcome.error).toMatchObject({ outcome: 'unknown', status: 503 });
      const living = Array.from({ length: count - dying }, () => 'granted');
      expect(answersOf(outcome)).toEqual([...Array.from({ length: dying }, () => 'timeout'), ...living]);
      expect(await stage.copies()).toBe(0);
      await stage.clock.advance(longMs);
    },
  );

  it('An acquire’s error distinguishes contention, timeouts, unreachable nodes and error replies', async () => {
    const stage = new QuorumStage(5);
    await putOn([stage.nodes[0]!], 'another');
    stage.nodes[1]!.always('acquire', dead);
    stage.nodes[2]!.always('acquire', down);
    stage.nodes[3]!.always('acquire', readOnly);
    const outcome = await asked(stage, stage.deafProcess().line());
    expect(answersOf(outcome)).toEqual(['refused', 'timeout', 'unreachable', 'failed', 'granted']);
    expect(String(outcome.error)).not.toMatch(/127|order|owner/);
    await stage.clock.advance(longMs);
  });

  it('An acquire leaves nothing on a node that gets a copy of it after its release', async () => {
    const stage = new QuorumStage(3);
    for (const node of stage.nodes.slice(0, 2)) node.always('acquire', readOnly);
    stage.nodes[2]!.always('acquire', { kind: 'duplicate', ms: 50 });
    await asked(stage, stage.deafProcess().line());
    expect(await stage.copies()).toBe(0);
  });

  it('An acquire is refused, not failed, if others have the key, however many nodes are silent', async () => {
    const stage = new QuorumStage(5);
    await putOn(stage.nodes.slice(0, 3), 'another');
    for (const node of stage.nodes.slice(3)) node.always('acquire', dead);
    expect((await asked(stage, stage.deafProcess().line())).value?.status).toBe('refused');
    await stage.clock.advance(longMs);
  });

  it('An acquire does not wait for a node that let its last deadline pass', async () => {
    const stage = new QuorumStage(3);
    stage.nodes[0]!.always('acquire', dead);
    await asked(stage, stage.deafProcess().line(undefined, { id: 'order:1' }));
    const outcome = await stage.clock.settled(outcomeOf(stage.deafProcess().line(undefined, { id: 'order:2' }).ask()));
    expect(outcome.value?.status).toBe('granted');
    await stage.clock.advance(longMs);
  });

  it('An acquire waits a little for such a node once it has responded again', async () => {
    const stage = new QuorumStage(3);
    stage.nodes[0]!.next('acquire', dead);
    await asked(stage, stage.deafProcess().line(undefined, { id: 'order:1' }));
    await stage.deafProcess().line(undefined, { id: 'order:2' }).hold();
    stage.nodes[0]!.next('acquire', { kind: 'lateReply', ms: 20 });
    const outcome = await stage.clock.settled(outcomeOf(stage.deafProcess().line(undefined, { id: 'order:3' }).ask()));
    expect(outcome.value).toBeUndefined();
    await stage.clock.advance(20);
    expect(outcome.value?.status).toBe('granted');
    await stage.clock.advance(longMs);
  });

  it('An acquire takes replies that are there with the deadline, as after a blocked event loop', async () => {
    const stage = new QuorumStage(3, { nodeTimeoutMs: 200 });
    for (const node of stage.nodes) node.next('acquire', { kind: 'lateReply', ms: 200 });
    const outcome = outcomeOf(stage.deafProcess().line().ask());
    await stage.clock.advance(200);
    expect(outcome.value?.status).toBe('granted');
  });

  it('An acquire waits for such a node if the others are too few', async () => {
    const stage = new QuorumStage(3);
    stage.nodes[0]!.next('acquire', dead);
    await asked(stage, stage.deafProcess().line(undefined, { id: 'order:1' }));
    stage.nodes[0]!.next('acquire', { kind: 'lateReply', ms: 100 });
    stage.nodes[1]!.always('acquire', readOnly);
    const outcome = await asked(stage, stage.deafProcess().line(undefined, { id: 'order:2' }));
    expect(outcome.value?.status).toBe('granted');
    await stage.clock.advance(longMs);
  });

  it('An acquire is one call to each node, except the first ones, whose fences have to be made equal', async () => {
    const stage = new QuorumStage(3);
    const calls = () => stage.nodes.map((node) => node.count('acquire'));
    for (const [index, node] of stage.nodes.entries()) node.next('acquire', { kind: 'lateCall', ms: 3 * index });
    await asked(stage, stage.deafProcess().line(undefined, { id: 'order:1' }));
    const before = calls();
    expect(Math.max(...before)).toBeGreaterThan(1);
    await asked(stage, stage.deafProcess().line(undefined, { id: 'order:2' }));
    expect(calls()).toEqual(before.map((count) => count + 1));
  });
});

describe('A grant of a quorum', () => {
  it('A grant counts its owner’s other holds, even if a node has none of them', async () => {
    const stage = new QuorumStage(3);
    const process = stage.deafProcess();
    stage.nodes[0]!.next('acquire', down);
    await process.line('owner').hold();
    expect(await process.line('owner').ask()).toMatchObject({ grant: { otherHolds: 1, equalHolds: 1 } });
    expect(await process.line('owner/1').ask()).toMatchObject({ grant: { otherHolds: 2, equalHolds: 0 } });
  });
});

describe('An acquire that no majority of nodes grants', () => {
  it('An acquire without a majority is released, and tried again after a pause with jitter', async () => {
    const stage = new QuorumStage(3);
    await putOn([stage.nodes[0]!], 'one', 5);
    await putOn([stage.nodes[1]!], 'two', 5);
    const outcome = await stage.clock.settled(outcomeOf(stage.deafProcess().line().ask()));
    expect(outcome.value).toBeUndefined();
    expect(await stage.copies()).toBe(2);
    // Half of the first pause's 20 ms.
    await stage.clock.advance(10);
    expect(outcome.value?.status).toBe('granted');
  });

  it('An acquire is not tried again once its tries took as long as one node may', async () => {
    const stage = new QuorumStage(3);
    await putOn([stage.nodes[0]!], 'one');
    await putOn([stage.nodes[1]!], 'two');
    stage.nodes[2]!.always('release', { kind: 'lateReply', ms: nodeTimeoutMs / 2 });
    const outcome = await asked(stage, stage.deafProcess().line());
    expect(outcome.value?.status).toBe('refused');
    expect(stage.nodes[2]!.count('acquire')).toBe(2);
  });

  it('An acquire is not tried again if it was released in that pause', async () => {
    const stage = new QuorumStage(3);
    await putOn([stage.nodes[0]!], 'one', 5);
    await putOn([stage.nodes[1]!], 'two', 5);
    const line = stage.deafProcess().line();
    const outcome = await stage.clock.settled(outcomeOf(line.ask()));
    await line.release();
    await stage.clock.advance(20);
    expect(outcome.value?.status).toBe('cancelled');
    expect(await stage.copies()).toBe(0);
  });

  it('An acquire is not tried again if another owner holds the key', async () => {
    const stage = new QuorumStage(3);
    await stage.deafProcess().line().hold();
    const before = stage.nodes[0]!.count('acquire');
    expect((await stage.deafProcess().line().try()).status).toBe('refused');
    expect(stage.nodes[0]!.count('acquire')).toBe(before + 1);
  });
});

describe('The validity of a grant', () => {
  it.each([
    [500, 'granted'],
    [700, 'refused'],
  ])('The validity is checked after the quorum: %i ms of a second later it is %s', async (ms, status) => {
    const stage = new QuorumStage(3, { nodeTimeoutMs: 2_000 });
    for (const node of stage.nodes) node.next('acquire', { kind: 'lateReply', ms });
    const outcome = outcomeOf(stage.deafProcess().line().ask({ queue: false, leaseMs: 1_000 }));
    await stage.clock.advance(ms);
    expect(outcome.value?.status).toBe(status);
    expect(await stage.copies()).toBe(status === 'granted' ? 3 : 0);
  });

  it('The validity counts from the first call, also for a repeat that shares its reply', async () => {
    const stage = new QuorumStage(3, { nodeTimeoutMs: 2_000 });
    for (const node of stage.nodes) node.next('acquire', { kind: 'lateReply', ms: 400 });
    const line = stage.deafProcess().line();
    const first = outcomeOf(line.ask({ queue: false, leaseMs: 1_000 }));
    await stage.clock.advance(300);
    const repeat = outcomeOf(line.ask({ queue: false, leaseMs: 1_000 }));
    await stage.clock.advance(100);
    expect(stage.nodes[0]!.count('acquire')).toBe(1);
    expect(leftMs(first)).toBe(1_000);
    expect(leftMs(repeat)).toBe(700);
  });

  it('The validity of an existing grant is not required: a repeat reports what is left, even if it is little', async () => {
    const stage = new QuorumStage(3);
    const line = stage.deafProcess().line();
    await line.hold({ leaseMs: 1_000 });
    await stage.clock.advance(900);
    expect(leftMs(await asked(stage, line, 1_000))).toBe(100);
  });

  it('The validity counts by the wall clock, too, in case the machine slept', async () => {
    const stage = new QuorumStage(3);
    for (const node of stage.nodes) node.next('acquire', { kind: 'lateReply', ms: 10 });
    const outcome = outcomeOf(stage.deafProcess().line().ask({ queue: false, leaseMs: 1_000 }));
    await stage.clock.settle();
    stage.clock.jumpWall(900);
    await stage.clock.advance(10);
    expect(outcome.value?.status).toBe('refused');
    expect(await stage.copies()).toBe(0);
  });

  it('The validity leaves room for the drift of the clocks', async () => {
    const stage = new QuorumStage(3, { nodeTimeoutMs: 80_000 });
    // Of 100 s, 1 % and 2 ms go; a third must be left.
    const leaseMs = 100_000;
    const latestMs = Math.floor(leaseMs - leaseMs / 100 - 2 - leaseMs / 3);
    for (const [ms, status] of [
      [latestMs, 'granted'],
      [latestMs + 1, 'refused'],
    ] as const) {
      for (const node of stage.nodes) node.next('acquire', { kind: 'lateReply', ms });
      const line = stage.deafProcess().line(undefined, { id: `order:${ms}` });
      const outcome = outcomeOf(line.ask({ queue: false, leaseMs }));
      await stage.clock.advance(ms);
      expect(outcome.value?.status).toBe(status);
    }
  });

  it('The validity sets the shortest lease that a quorum needs', async () => {
    const stage = new QuorumStage(3);
    stage.nodes[0]!.next('acquire', { kind: 'lateCall', ms: 20 });
    stage.nodes[1]!.next('acquire', { kind: 'lateCall', ms: 10 });
    const outcome = outcomeOf(stage.deafProcess().line().ask({ queue: false, leaseMs: 1_000 }));
    await stage.clock.advance(20);
    const reply = outcome.value!;
    expect(reply.status === 'granted' && reply.grant.endMs - reply.nowMs).toBe(1_000);
    expect(fenceOf(outcome)).toBeGreaterThan(0);
  });
});

describe('Nodes whose clocks are an hour apart', () => {
  /** The nodes by these numbers are ahead. */
  function apart(count: number, ahead: readonly number[]): { stage: QuorumStage; nodes: readonly FakeStore[] } {
    const stage = new QuorumStage(count);
    const { clock } = stage;
    const now = () => ({ ...clock.now(), wallMs: clock.now().wallMs + 3_600_000 });
    const fast: Clock = { now, after: (ms, run) => clock.after(ms, run), randomId: () => '', jitter: () => 0 };
    const nodes = Array.from({ length: count }, (_, index) => new FakeStore(ahead.includes(index) ? fast : clock));
    stage.store = new QuorumStore({ stores: nodes }, clock);
    return { stage, nodes };
  }

  it('Nodes with distant clocks get one call, except the first time: the proposed fence exceeds all of theirs', async () => {
    const { stage, nodes } = apart(3, [1, 2]);
    await asked(stage, stage.deafProcess().line(undefined, { id: 'order:1' }));
    const before = nodes.map((node) => node.count('acquire'));
    nodes[2]!.next('acquire', { kind: 'lateCall', ms: 3 });
    await asked(stage, stage.deafProcess().line(undefined, { id: 'order:2' }));
    expect(nodes.map((node) => node.count('acquire'))).toEqual(before.map((count) => count + 1));
  });

  it('A grant keeps its whole lease, even if the nodes that refused it are ahead of those that granted it', async () => {
    const { stage, nodes } = apart(5, [0, 3, 4]);
    await putOn(nodes.slice(3), 'another');
    expect(leftMs(await asked(stage, stage.deafProcess().line(), 1_000))).toBe(1_000);
  });

  it('A renewal keeps what a quorum has left of an earlier one that a node missed', async () => {
    const { stage, nodes } = apart(3, [0, 1]);
    const line = stage.deafProcess().line();
    const { fence } = await line.hold({ leaseMs: 1_000 });
    nodes[0]!.next('renew', down);
    await line.renew(fence, 60_000);
    const renewed = await line.renew(fence, 1_000);
    expect(renewed.status === 'renewed' && renewed.endMs - renewed.nowMs).toBe(60_000);
  });

  it('A refusal has the time when enough nodes will be free', async () => {
    const { stage, nodes } = apart(3, [0]);
    for (const [index, leaseMs] of [10_000, 40_000, 20_000].entries()) await putOn([nodes[index]!], 'another', leaseMs);
    expect((await asked(stage, stage.deafProcess().line())).value).toMatchObject({ leaseRemainingMs: 20_000 });
  });

  it('A refused acquire does not wait longer than the lease lasts, even if another node is silent', async () => {
    const { stage, nodes } = apart(3, [0]);
    await putOn(nodes, 'another', 10_000);
    nodes[2]!.next('acquire', down);
    expect((await asked(stage, stage.deafProcess().line())).value).toMatchObject({ leaseRemainingMs: 10_000 });
  });
});
