import { LockStoreError } from 'reenlock';
import type { HoldRequest } from '../../../src/core/model/store.ts';
import { longMs } from '../../../src/testing/contract/harness.ts';
import type { Line } from '../../../src/testing/contract/stage.ts';
import type { Fault } from '../../support/stores/fake-store.ts';
import { answersOf, putOn, QuorumStage } from '../../support/stores/quorum-stage.ts';
import { outcomeOf } from '../../support/stores/set-up.ts';

const down: Fault = { kind: 'rejected', error: new Error('ECONNREFUSED') };
const refusal = new LockStoreError('The lock store replied READONLY', { outcome: 'not-applied' });
const readOnly: Fault = { kind: 'rejected', error: refusal };
const soon: Fault = { kind: 'lateCall', ms: 0 };

/** Asks, while less time passes than a late call takes. */
async function asked(stage: QuorumStage, line: Line = stage.deafProcess().line()) {
  const outcome = outcomeOf(line.ask());
  await stage.clock.advance(350);
  return outcome;
}

/** Three nodes that grant with fences of their own, and are asked again to have one in common. */
function disagreed(): QuorumStage {
  const stage = new QuorumStage(3);
  for (const [index, node] of stage.nodes.entries()) node.next('acquire', { kind: 'lateCall', ms: index });
  return stage;
}

describe('An acquire that failed on a quorum', () => {
  it('A failed acquire is released where it was granted, even if the node refused the call for a common fence', async () => {
    const stage = disagreed();
    for (const node of stage.nodes.slice(0, 2)) node.next('acquire', readOnly);
    const outcome = await asked(stage);
    expect(answersOf(outcome)).toEqual(['failed', 'failed', 'granted']);
    expect(outcome.error).toMatchObject({ outcome: 'not-applied' });
    expect(await stage.copies()).toBe(0);
  });

  it('A refused acquire is released on a node that granted it and reported that the outcome is unknown', async () => {
    const stage = new QuorumStage(3);
    await putOn(stage.nodes.slice(1), 'another');
    const error = new LockStoreError('The lock store did not reply to acquire', { outcome: 'unknown' });
    stage.nodes[0]!.next('acquire', { kind: 'rejectedReply', error });
    const outcome = await asked(stage, stage.deafProcess().line());
    expect(outcome.value?.status).toBe('queued');
    expect((await stage.nodes[0]!.inspect('order:42')).holds).toEqual([]);
  });

  it('A failed acquire is unknown if a node has not replied yet, and nobody waits for it', async () => {
    const stage = new QuorumStage(3);
    for (const node of stage.nodes.slice(0, 2)) node.next('acquire', readOnly);
    stage.nodes[2]!.next('acquire', { kind: 'lateCall', ms: 100 });
    const outcome = outcomeOf(stage.deafProcess().line().ask());
    await stage.clock.advance(50);
    expect(answersOf(outcome)).toEqual(['failed', 'failed', 'timeout']);
    expect(outcome.error).toMatchObject({ outcome: 'unknown' });
    await stage.clock.advance(longMs);
    expect(await stage.copies()).toBe(0);
  });

  it('A failed acquire is unknown if a node may still execute an earlier try', async () => {
    const stage = new QuorumStage(4);
    await putOn([stage.nodes[0]!, stage.nodes[1]!], 'another', 5);
    for (const node of stage.nodes.slice(0, 3)) node.next('acquire', soon, readOnly);
    stage.nodes[3]!.next('acquire', { kind: 'lateCall', ms: 400 });
    const outcome = await asked(stage);
    expect(answersOf(outcome)).toEqual(['failed', 'failed', 'failed', 'timeout']);
    expect(outcome.error).toMatchObject({ outcome: 'unknown' });
    await stage.clock.advance(longMs);
    expect(await stage.copies()).toBe(0);
  });

  it('A failed acquire is unknown if a node did not reply to an earlier try, even if the last one is known to be undone', async () => {
    const stage = new QuorumStage(3);
    await putOn(stage.nodes.slice(0, 1), 'another', 5);
    for (const node of stage.nodes.slice(0, 2)) node.next('acquire', soon, readOnly);
    stage.nodes[2]!.next('acquire', down, readOnly);
    const outcome = await asked(stage);
    expect(answersOf(outcome)).toEqual(['failed', 'failed', 'failed']);
    expect(outcome.error).toMatchObject({ outcome: 'unknown' });
  });

  it('A failed acquire is unknown if a node has not replied to the release of an earlier try', async () => {
    const stage = new QuorumStage(3);
    await putOn(stage.nodes.slice(0, 1), 'one', 5);
    await putOn(stage.nodes.slice(1, 2), 'two', 5);
    for (const node of stage.nodes.slice(0, 2)) node.next('acquire', soon, readOnly);
    stage.nodes[2]!.always('release', down);
    const outcome = await asked(stage);
    expect(answersOf(outcome)).toEqual(['failed', 'failed', 'timeout']);
    expect(outcome.error).toMatchObject({ outcome: 'unknown' });
    expect(await stage.copies()).toBe(1);
    stage.nodes[2]!.heal();
    await stage.clock.advance(longMs);
    expect(await stage.copies()).toBe(0);
  });

  it('A failed acquire is unknown if it was released meanwhile, and the nodes have not replied to that', async () => {
    const stage = disagreed();
    const line = stage.deafProcess().line();
    const outcome = outcomeOf(line.ask());
    let refuse = (): void => {};
    const refused = new Promise<never>((_, reject) => {
      refuse = () => reject(refusal);
    });
    for (const node of stage.nodes) {
      node.always('release', { kind: 'lateCall', ms: 100 });
      const acquire = node.acquire.bind(node);
      node.acquire = (request, terms) => {
        if (node.count('acquire') === 0) return acquire(request, terms);
        return refused;
      };
    }
    await stage.clock.advance(10);
    const released = outcomeOf(line.release(longMs));
    refuse();
    await stage.clock.settle();
    expect(outcome.error).toMatchObject({ outcome: 'unknown' });
    expect(await stage.copies()).toBe(3);
    await stage.clock.advance(100);
    expect(released.value?.status).toBe('released');
  });

  it('A failed acquire is unknown if it was granted before, and stands', async () => {
    const stage = new QuorumStage(3);
    const line = stage.deafProcess().line();
    await line.hold();
    for (const node of stage.nodes) node.next('acquire', readOnly);
    expect((await asked(stage, line)).error).toMatchObject({ outcome: 'unknown' });
    expect(await stage.copies()).toBe(3);
  });

  it('A failed acquire is unknown if a copy of the call may still reach a node that replied', async () => {
    const stage = new QuorumStage(3);
    await putOn([stage.nodes[0]!], 'another');
    const acquire = stage.nodes[0]!.acquire.bind(stage.nodes[0]);
    stage.nodes[0]!.acquire = async (request: HoldRequest, terms) => ({
      ...(await acquire(request, terms)),
      mayArriveLater: true,
    });
    for (const node of stage.nodes.slice(1)) node.next('acquire', readOnly);
    const outcome = await asked(stage);
    expect(answersOf(outcome)).toEqual(['refused', 'failed', 'failed']);
    expect(outcome.error).toMatchObject({ outcome: 'unknown' });
  });
});
