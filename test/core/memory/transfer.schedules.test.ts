import { MemoryStore } from '../../../src/core/memory/memory-store.ts';
import type { HoldRequest } from '../../../src/core/model/store.ts';
import { ManualClock } from '../../../src/testing/manual-clock.ts';

const id = 'seat:12A';
const leaseMs = 10_000;

function request(holdId: string): HoldRequest {
  return { id, holdId, owner: `owner of ${holdId}`, process: holdId, claimMs: 1_000, mode: 'write', priority: 0 };
}

const [detached, one, two, other] = ['detached', 'one', 'two', 'other'].map(request) as [
  HoldRequest,
  HoldRequest,
  HoldRequest,
  HoldRequest,
];

/** What may happen to a detached hold, in any order: each call may also arrive late, or twice. */
const steps = ['resume one', 'resume one', 'resume two', 'release one', 'lease ends', 'force', 'acquire'] as const;
type Step = (typeof steps)[number];

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length === 0) return [[]];
  return items.flatMap((item, at) => permutations(items.filter((_, i) => i !== at)).map((rest) => [item, ...rest]));
}

/** Plays the steps; returns who was granted the key, in their order, and the fences that they got. */
async function play(order: readonly Step[]): Promise<{ granted: string[]; fences: number[]; most: number }> {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock });
  const terms = { leaseMs, queue: false, maxWaiters: 1, livenessMs: leaseMs };
  await store.acquire(detached, { ...terms, leaseMs: leaseMs / 2 });
  const granted: string[] = [];
  const fences: number[] = [];
  let most = 0;
  const note = (reply: { status: string; grant?: { holdId: string; fence: number } }): void => {
    if (reply.status !== 'granted' || reply.grant === undefined || granted.includes(reply.grant.holdId)) return;
    granted.push(reply.grant.holdId);
    fences.push(reply.grant.fence);
  };
  const resume = async (to: HoldRequest) => note(await store.transfer(detached, to, { leaseMs, tombstoneMs: 60_000 }));
  const calls: Readonly<Record<Step, () => Promise<unknown> | unknown>> = {
    'resume one': () => resume(one),
    'resume two': () => resume(two),
    'release one': () => store.release({ ...one }, { tombstoneMs: 60_000 }),
    'lease ends': () => clock.skip(leaseMs / 2),
    force: async () => store.forceRelease(id, (await store.inspect(id)).holds[0]?.fence ?? 1),
    acquire: async () => note(await store.acquire(other, terms)),
  };
  for (const step of order) {
    await calls[step]();
    most = Math.max(most, (await store.inspect(id)).holds.length);
  }
  return { granted, fences, most };
}

it('In whatever order resumes, a release, the end of the lease, force and a newcomer happen, a token gives one hold at most, and fences rise', async () => {
  const outcomes = new Set<string>();
  for (const order of permutations(steps)) {
    const { granted, fences, most } = await play(order);
    const resumed = granted.filter((holdId) => holdId !== 'other');
    const isRising = fences.every((fence, at) => at === 0 || fence > fences[at - 1]!);
    if (resumed.length > 1 || most > 1 || !isRising) throw new Error(`${order.join(', ')}: ${granted.join(', ')}`);
    const endsFirst = ['lease ends', 'force'].some((end) => order.indexOf(end as Step) < order.indexOf('resume one'));
    if (endsFirst && order.indexOf('resume two') > order.indexOf('resume one') && resumed.length > 0)
      throw new Error(`${order.join(', ')}: resumed after its end`);
    outcomes.add(granted.join(', '));
  }
  // All of them were seen.
  expect([...outcomes].sort()).toEqual(['', 'one', 'one, other', 'other', 'two', 'two, other']);
});
