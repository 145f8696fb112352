import type { AcquireTerms } from '../../../src/core/model/store.ts';
import { longMs } from '../../../src/testing/contract/harness.ts';
import type { FakeStore } from '../../support/stores/fake-store.ts';
import { answersOf, fenceOf, putOn, QuorumStage } from '../../support/stores/quorum-stage.ts';
import { outcomeOf } from '../../support/stores/set-up.ts';

const nodeTimeoutMs = 250;
const aheadMs = 3_600_000;

/** A fence far ahead on one node: its clock was, once. */
async function runAhead(stage: QuorumStage, index: number): Promise<number> {
  const node = stage.nodes[index]!;
  const request = {
    id: 'order:42',
    holdId: 'ahead',
    owner: 'ahead',
    process: 'ahead',
    claimMs: 1_000,
    mode: 'write' as const,
    priority: 0,
  };
  const minFence = (stage.clock.now().wallMs + aheadMs) * 1000;
  await node.acquire(request, { leaseMs: 1_000, queue: false, maxWaiters: 1, livenessMs: 1_000, minFence });
  await node.release(request, { tombstoneMs: 0 });
  return minFence;
}

describe('The fence of a quorum', () => {
  it('The fence is beyond the greatest of any granting node, and stands on a quorum before it is reported', async () => {
    const stage = new QuorumStage(3);
    const ahead = await runAhead(stage, 0);
    // The third is away: the first one's word is needed.
    stage.nodes[2]!.next('acquire', { kind: 'lostCall' });
    const outcome = outcomeOf(stage.deafProcess().line().ask({ queue: false }));
    await stage.clock.advance(nodeTimeoutMs + 1);
    const fence = fenceOf(outcome);
    expect(fence).toBeGreaterThan(ahead);
    for (const node of stage.nodes.slice(0, 2))
      expect((await node.inspect('order:42')).holds).toMatchObject([{ fence }]);
    await stage.clock.advance(longMs);
  });

  it('The fence rises with each owner, whichever nodes are away in each turn', async () => {
    const stage = new QuorumStage(3);
    await runAhead(stage, 0);
    const fences: number[] = [];
    for (let turn = 0; turn < 12; turn++) {
      // Each owner comes from a process that knows nothing yet.
      const line = stage.sibling().deafProcess().line();
      stage.nodes[turn % 3]!.next('acquire', { kind: 'rejected', error: new Error('ECONNREFUSED') });
      const outcome = outcomeOf(line.ask({ queue: false, leaseMs: 100 }));
      await stage.clock.advance(nodeTimeoutMs);
      fences.push(fenceOf(outcome));
      await line.release();
      await stage.clock.advance(200);
    }
    expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b));
  });

  it('The fence is not raised by a copy of an earlier call, made when a slow node seemed to be ahead', async () => {
    const stage = new QuorumStage(3);
    const process = stage.deafProcess();
    stage.nodes[2]!.next('acquire', { kind: 'lateCall', ms: 1_000 });
    const slow = process.line();
    const before = outcomeOf(slow.ask());
    await stage.clock.advance(1_000);
    fenceOf(before);
    await slow.release();
    await putOn(stage.nodes, 'another', 10);
    const line = process.line();
    for (const node of stage.nodes) node.next('acquire', { kind: 'duplicate', ms: 100 });
    expect((await line.try()).status).toBe('refused');
    await stage.clock.advance(50);
    const { fence } = await line.hold();
    await stage.clock.advance(100);
    for (const node of stage.nodes) expect((await node.inspect('order:42')).holds).toMatchObject([{ fence }]);
    expect((await line.renew(fence)).status).toBe('renewed');
    await line.release();
  });

  it('The fence is proposed by the clocks again once the clock that was ahead is right', async () => {
    const stage = new QuorumStage(3);
    const process = stage.deafProcess();
    const [node, other] = stage.nodes as [FakeStore, FakeStore];
    const acquire = node.acquire.bind(node);
    node.acquire = async (request, terms) => {
      const reply = await acquire(request, terms);
      return { ...reply, nowMs: reply.nowMs + aheadMs };
    };
    for (let turn = 0; turn < 4; turn++) {
      if (turn === 2) node.acquire = acquire;
      const line = process.line(undefined, { id: `order:${turn}` });
      await line.hold();
      await line.release();
    }
    const terms = other.calls
      .filter(({ operation }) => operation === 'acquire')
      .map((call) => call.terms as AcquireTerms);
    const wallMs = stage.clock.now().wallMs;
    // The first time nothing is known of the clocks, and the third time not yet that one is right.
    expect(terms.map(({ minFence = 0 }) => minFence / 1000 - wallMs >= aheadMs)).toEqual([false, true, true, false]);
  });

  it('The fence rises if the next client has a slow clock, and the one after it a fast one', async () => {
    const stage = new QuorumStage(3);
    const fences: number[] = [];
    for (const offsetMs of [0, aheadMs, -aheadMs, 0]) {
      const now = () => ({ ...stage.clock.now(), wallMs: stage.clock.now().wallMs + offsetMs });
      const other = stage.sibling();
      other.store = stage.another(
        {},
        { now, after: (ms, run) => stage.clock.after(ms, run), randomId: () => '', jitter: () => 0 },
      );
      const line = other.deafProcess().line();
      // Twice: the second call comes with a proposal.
      for (const _ of [1, 2]) {
        fences.push((await line.hold()).fence);
        await line.release();
      }
    }
    expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b));
    expect(fences.at(-1)! / 1000 - stage.clock.now().wallMs).toBeLessThan(1_000);
  });

  it('The fence at re-entry is that of the quorum, even if a node that joined has a greater one', async () => {
    const stage = new QuorumStage(3);
    stage.nodes[2]!.next('acquire', { kind: 'rejected', error: new Error('ECONNREFUSED') });
    const outer = stage.deafProcess().line('owner');
    const { fence } = await outer.hold();
    await stage.clock.advance(1_000);
    const inner = stage.sibling().deafProcess().line('owner');
    expect((await inner.hold()).fence).toBe(fence);
    expect((await outer.renew(fence)).status).toBe('renewed');
    expect((await inner.renew(fence)).status).toBe('renewed');
  });

  it('Re-entry without a quorum that agrees fails, and the outer hold is left alone', async () => {
    const stage = new QuorumStage(3);
    stage.nodes[2]!.next('acquire', { kind: 'rejected', error: new Error('ECONNREFUSED') });
    const outer = stage.deafProcess().line('owner');
    const { fence } = await outer.hold();
    await stage.clock.advance(1_000);
    stage.nodes[0]!.always('acquire', { kind: 'rejected', error: new Error('ECONNREFUSED') });
    const outcome = outcomeOf(stage.sibling().deafProcess().line('owner').ask());
    await stage.clock.advance(nodeTimeoutMs);
    expect(answersOf(outcome)).toEqual(['unreachable', 'granted', 'granted']);
    expect(String(outcome.error)).toContain('fence');
    expect((await outer.renew(fence)).status).toBe('renewed');
    expect(await stage.copies()).toBe(2);
    await stage.clock.advance(longMs);
  });

  it('Two processes of one owner that acquire at once get one fence, even if each node has another', async () => {
    const stage = new QuorumStage(3);
    for (const [index, node] of stage.nodes.entries()) {
      const fault = { kind: 'lateCall', ms: 3 * index } as const;
      node.next('acquire', fault, fault);
    }
    const outcomes = [stage, stage.sibling()].map((each) => outcomeOf(each.deafProcess().line('owner').ask()));
    await stage.clock.advance(nodeTimeoutMs);
    const [fence, other] = outcomes.map(fenceOf);
    expect(other).toBe(fence);
  });

  it('What is left of the owner on one node does not delay the fence', async () => {
    const stage = new QuorumStage(3);
    await putOn([stage.nodes[1]!], 'owner');
    await stage.clock.advance(1_000);
    const outcome = outcomeOf(stage.deafProcess().line('owner').ask());
    await stage.clock.advance(nodeTimeoutMs);
    const line = stage.deafProcess().line('another');
    expect(fenceOf(outcome)).toBeGreaterThan((await stage.nodes[1]!.inspect('order:42')).holds[0]!.fence);
    expect((await line.try()).status).toBe('refused');
  });
});

describe('One hold id on a quorum', () => {
  it('A hold id keeps its fence if a node granted it late with a greater one, and another is away', async () => {
    const stage = new QuorumStage(3);
    stage.nodes[2]!.next('acquire', { kind: 'lateCall', ms: 100 });
    const line = stage.deafProcess().line();
    const first = outcomeOf(line.ask());
    await stage.clock.advance(200);
    stage.nodes[1]!.next('acquire', { kind: 'rejected', error: new Error('ECONNREFUSED') });
    const repeat = outcomeOf(line.ask());
    await stage.clock.advance(nodeTimeoutMs);
    expect(String(repeat.error)).toContain('fence');
    expect((await line.hold()).fence).toBe(fenceOf(first));
    expect((await line.renew(fenceOf(first))).status).toBe('renewed');
  });

  it('A repeated hold id returns its first grant, even if other nodes reply now', async () => {
    const stage = new QuorumStage(3);
    const line = stage.deafProcess().line();
    const grant = await line.hold();
    for (const away of stage.nodes) {
      away.next('acquire', { kind: 'rejected', error: new Error('ECONNREFUSED') });
      expect(await line.hold()).toMatchObject({ fence: grant.fence, holdId: grant.holdId });
    }
    expect(await stage.copies()).toBe(3);
  });

  it('A hold id may be tried again after a failure, and late calls of the first try change nothing', async () => {
    const stage = new QuorumStage(3);
    const line = stage.deafProcess().line();
    // Two nodes execute the first try after its deadline, and answer even later.
    stage.nodes[0]!.next('acquire', { kind: 'lateCall', ms: 400 });
    stage.nodes[1]!.next('acquire', { kind: 'lateCall', ms: 600 });
    const first = outcomeOf(line.ask({ queue: false }));
    await stage.clock.advance(nodeTimeoutMs + 1);
    expect(answersOf(first)).toEqual(['timeout', 'timeout', 'granted']);
    // As long as they may still execute it, they have no say.
    const second = await stage.clock.settled(outcomeOf(line.ask({ queue: false })));
    expect(answersOf(second)).toEqual(['timeout', 'timeout', 'granted']);
    await stage.clock.advance(1_000);
    expect(await stage.copies()).toBe(0);
    const third = outcomeOf(line.ask({ queue: false }));
    await stage.clock.advance(nodeTimeoutMs);
    expect(fenceOf(third)).toBeGreaterThan(0);
    expect(await stage.copies()).toBe(3);
  });

  it('A hold id that is released during its acquire is cancelled, and stays nowhere', async () => {
    const stage = new QuorumStage(3);
    for (const node of stage.nodes) node.next('acquire', { kind: 'lateReply', ms: 100 });
    const line = stage.deafProcess().line();
    const asked = await stage.clock.settled(outcomeOf(line.ask()));
    const released = outcomeOf(line.release(longMs));
    await stage.clock.advance(100);
    expect(asked.value?.status).toBe('cancelled');
    expect(released.value?.status).toBe('released');
    expect(await stage.copies()).toBe(0);
    expect((await line.ask()).status).toBe('cancelled');
  });

  it('A hold id that is released during its acquire is cancelled, even if only one node replies', async () => {
    const stage = new QuorumStage(3);
    stage.nodes[0]!.next('acquire', { kind: 'lateReply', ms: 10 });
    for (const node of stage.nodes.slice(1))
      node.next('acquire', { kind: 'rejected', error: new Error('ECONNREFUSED') });
    const line = stage.deafProcess().line();
    const asked = await stage.clock.settled(outcomeOf(line.ask()));
    await line.release(longMs);
    await stage.clock.advance(10);
    expect(asked.value?.status).toBe('cancelled');
    expect(await stage.copies()).toBe(0);
  });

  it('A hold id that is released during its acquire counts as never granted', async () => {
    const stage = new QuorumStage(3);
    for (const node of stage.nodes) node.next('acquire', { kind: 'lateReply', ms: 100 });
    const line = stage.deafProcess().line();
    const asked = await stage.clock.settled(outcomeOf(line.ask()));
    await line.release(longMs);
    await stage.clock.advance(100);
    expect(asked.value?.status).toBe('cancelled');
    // The nodes have forgotten it.
    await stage.clock.advance(longMs);
    await putOn(stage.nodes.slice(1), 'another');
    const later = outcomeOf(line.try());
    await stage.clock.advance(nodeTimeoutMs);
    expect(later.value?.status).toBe('refused');
    expect((await stage.nodes[0]!.inspect('order:42')).holds).toEqual([]);
  });

  it('A hold id that a node granted late, alongside a quorum, is renewed and released there, too', async () => {
    const stage = new QuorumStage(3);
    stage.nodes[2]!.next('acquire', { kind: 'lateCall', ms: 400 });
    const line = stage.deafProcess().line();
    const outcome = outcomeOf(line.ask());
    await stage.clock.advance(500);
    expect(await stage.copies()).toBe(3);
    stage.nodes[0]!.next('renew', { kind: 'rejected', error: new Error('ECONNREFUSED') });
    expect((await line.renew(fenceOf(outcome))).status).toBe('renewed');
    expect((await line.release()).status).toBe('released');
    expect(await stage.copies()).toBe(0);
  });
});
