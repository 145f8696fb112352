import { type Explored, explore as exploreModel } from './explore.ts';
import { isLong } from './seed.ts';
import { type Budgets, fairSteps, firstWorld, isDone, mishaps, type World } from './thin-locks-model.ts';
import { fencesPerTick, type Key, leaseTicks, type Protocol, realProtocol } from './thin-locks-server.ts';

/** The clients by the leases that they ask for, what may go wrong, and what the key has at first. */
interface Start {
  readonly leases: readonly number[];
  readonly budgets?: Partial<Budgets>;
  readonly key?: Key;
}

/** Longer than a thin key lives: who asks for it goes to the scripts at once. */
const longLease = 5;
const two = [leaseTicks, leaseTicks];
const three = [leaseTicks, leaseTicks, leaseTicks];
/** One more entry in the first tick has no fence of its own. */
const lastFence: Key = { kind: 'stream', entries: [], lastId: [1, 1], expiresAt: 4 };

/** Nobody has used it for a while: it is removed at the next tick. */
const oldKey: Key = { kind: 'stream', entries: [], lastId: [0, 0], expiresAt: 2 };

/** What follows from a broken world shows nothing: it counts as an end. */
function explore({ leases, budgets, key }: Start, protocol = realProtocol, until?: string): Explored {
  const none = { losses: 0, cancels: 0, crashes: 0, ticks: 0, setbacks: 0, renewals: 0 };
  const isBroken = ({ broken }: World): boolean => broken.length > 0;
  return exploreModel<World>(
    {
      first: firstWorld(leases, { ...none, ...budgets }, key),
      fairSteps: (world) => (isBroken(world) ? [] : fairSteps(world, protocol)),
      mishaps: (world) => (isBroken(world) ? [] : mishaps(world, protocol)),
      isDone: (world) => isBroken(world) || isDone(world),
      brokenIn: ({ broken }) => broken,
      unserved: 'a client was not served',
    },
    until,
  );
}

describe('Thin locks and scripts share a key: one holder, rising fences, nothing held by nobody, and all are served', () => {
  it.each<[string, Start, Start]>([
    ['Three clients that want a key at once', { leases: three }, { leases: three, budgets: { cancels: 1 } }],
    [
      'A call that is sent again while its first copy arrives late, and a client that gives up',
      { leases: two, budgets: { losses: 1, cancels: 1 } },
      { leases: two, budgets: { losses: 2, cancels: 1 } },
    ],
    [
      'A call that is sent again while leases end',
      { leases: two, budgets: { losses: 1, ticks: 1 } },
      { leases: two, budgets: { losses: 1, ticks: 3 } },
    ],
    [
      'A client that crashes at any point',
      { leases: two, budgets: { crashes: 1, ticks: 1 } },
      { leases: three, budgets: { crashes: 1 } },
    ],
    [
      'Leases that end, and a key that the server removes in the middle of a call',
      { leases: two, budgets: { ticks: 2 } },
      { leases: two, budgets: { ticks: 4, renewals: 1 } },
    ],
    [
      'A hold that is renewed',
      { leases: two, budgets: { renewals: 1, ticks: 1 } },
      { leases: two, budgets: { renewals: 1, ticks: 2, cancels: 1 } },
    ],
    [
      'A clock that is set back',
      { leases: two, budgets: { setbacks: 1, ticks: 1 } },
      { leases: two, budgets: { setbacks: 2, ticks: 2, crashes: 1 } },
    ],
    [
      'More entries in a tick than there are fences',
      { leases: two, budgets: { ticks: 1 }, key: lastFence },
      { leases: three, budgets: { ticks: 1 }, key: lastFence },
    ],
    [
      'A lease that is longer than a thin key lives',
      { leases: [leaseTicks, longLease], budgets: { ticks: 3 } },
      { leases: [leaseTicks, leaseTicks, longLease], budgets: { crashes: 1, ticks: 2 } },
    ],
  ])('%s', (title, start, longStart) => {
    const { worlds, broken } = explore(isLong ? longStart : start);
    process.stdout.write(`thin locks: ${worlds} worlds: ${title}\n`);
    expect([...broken]).toEqual([]);
    expect(worlds).toBeGreaterThan(500);
  });
});

describe('What the model of thin locks finds', () => {
  it.each<[string, string, Start, Partial<Protocol>]>([
    [
      'no tombstone for an acquire that arrives late',
      'held by nobody',
      { leases: two, budgets: { cancels: 1 } },
      { remembers: false },
    ],
    [
      'a length of one that counts as a hold: the one entry may be that of another client',
      'two holders',
      { leases: three, budgets: { ticks: 1 } },
      {
        first: ({ entries: [only, ...more] }, who) =>
          only && !more[0] ? { is: 'first', who, id: only.id } : { is: 'other' },
      },
    ],
    [
      'a length of two that counts as a hold',
      'two holders',
      { leases: two },
      { first: ({ entries }, who) => ({ is: 'first', who, id: entries.at(-1)?.id ?? [0, 0] }) },
    ],
    [
      'a stray entry that counts as the hold',
      'two holders',
      { leases: two },
      { holderOf: (entries) => entries.at(-1) },
    ],
    ['a script that overlooks a thin hold', 'two holders', { leases: two }, { holderOf: () => undefined }],
    [
      'a key that is thin again while a late copy may come',
      'held by nobody',
      { leases: two, budgets: { cancels: 1 } },
      { mayBeThin: (record) => realProtocol.mayBeThin({ ...record, tombstones: [] }) },
    ],
    [
      'a key that is thin again while a client holds it',
      'two holders',
      { leases: three, budgets: { cancels: 1 } },
      { mayBeThin: (record) => realProtocol.mayBeThin({ ...record, holder: undefined }) },
    ],
    [
      'a last fence that goes with the record',
      'the fence did not rise',
      { leases: two },
      { thinFence: (_, now) => now * fencesPerTick },
    ],
    [
      'an entry without a fence of its own',
      'the fence did not rise',
      { leases: two, budgets: { ticks: 1 }, key: lastFence },
      { isHeld: (reply, who) => reply.is === 'first' && reply.who === who },
    ],
    [
      'a time to live that a thin acquire makes shorter',
      'two holders',
      { leases: [leaseTicks, longLease], budgets: { ticks: 3 } },
      { expiry: (_, wanted) => wanted },
    ],
    [
      'a time to live that no later acquire makes longer',
      'two holders',
      { leases: two, budgets: { ticks: 1 }, key: oldKey },
      { expiry: (old, wanted) => old ?? wanted },
    ],
    ['a key that XADD makes, without a time to live', 'a key that never ends', { leases: two }, { makesStream: true }],
    [
      'a copy that is left when its hold is deleted',
      'held by nobody',
      { leases: two, budgets: { losses: 1 } },
      { mayDelete: () => true },
    ],
    [
      'a hold in a record that its client takes for deleted',
      'held by nobody',
      { leases: two },
      { onNotDeleted: 'gone' },
    ],
  ])('The model finds %s: %s', (_, finding, start, changes) => {
    expect([...explore(start, { ...realProtocol, ...changes }, finding).broken]).toContain(finding);
  });
});
