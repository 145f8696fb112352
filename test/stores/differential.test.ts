import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import type { Pool } from 'pg';
import { MemoryStore } from '../../src/core/memory/memory-store.ts';
import type { HoldRequest, LockStore, StoreMessage, Unsubscribe } from '../../src/core/model/store.ts';
import type { LockMode } from '../../src/core/model/types.ts';
import { RedisStore } from '../../src/stores/redis/redis-store.ts';
import { isLong, isWhole, printSeed, seed } from '../fault/seed.ts';
import { ManualClock } from '../support/clock/manual-clock.ts';
import { usePostgres } from '../support/postgres/stage.ts';
import { useRedis } from '../support/redis/redis-stage.ts';
import { runTimed, setScriptTime } from '../support/redis/script-time.ts';
import { until } from '../support/until.ts';

printSeed('differential');

/** Of leases, claims and tombstones. */
const unitMs = 1_000;
/** No process is silent for so long in a play: of that, each store may make a tenth more. */
const livenessMs = 1_000_000;

const count = { processes: 2, holds: 6 };
/** Two traces, one of them with branches. */
const owners = ['T', 'T', 'T/1', 'T/1', 'T/1/a', 'T/1/b', 'T/2', 'T/2/a', 'U', 'U', 'U/1'];
const runs = isLong ? 10_000 : isWhole ? 200 : 80;
const timeoutMs = isLong ? 1_200_000 : 120_000;

type Step =
  | {
      readonly kind: 'acquire';
      readonly hold: number;
      readonly queue: boolean;
      readonly units: number;
      readonly max: number;
    }
  | { readonly kind: 'renew'; readonly hold: number; readonly units: number; readonly fence: Fence }
  | { readonly kind: 'release'; readonly hold: number; readonly tombstone: boolean }
  | { readonly kind: 'transfer'; readonly hold: number; readonly units: number }
  | { readonly kind: 'forceRelease'; readonly fence: Fence }
  | { readonly kind: 'listen'; readonly process: number }
  | { readonly kind: 'leave'; readonly process: number }
  | { readonly kind: 'pass'; readonly ms: number }
  | { readonly kind: 'inspect' };

/** The one that the hold was granted with, the one that was seen last, or one that never was. */
type Fence = 'granted' | 'last' | 'never';

interface Cast {
  /** Of each hold id. */
  readonly holds: readonly {
    readonly owner: string;
    /** The owner that it is passed on to. */
    readonly nextOwner: string;
    readonly process: number;
    readonly claimUnits: number;
    readonly mode: LockMode | number;
    readonly priority: number;
  }[];
  readonly steps: readonly Step[];
}

const hold = fc.nat(count.holds - 1);
/** Of those behind the others, each is what one of them is passed on to. */
const holdOrNext = fc.nat(2 * count.holds - 1);
const units = fc.integer({ min: 1, max: 5 });
const fence = fc.constantFrom<Fence>('granted', 'granted', 'last', 'never');
const oneInFive = fc.nat(4).map((dice) => dice === 0);
const step = fc.oneof<fc.WeightedArbitrary<Step>[]>(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant('acquire'),
      hold,
      queue: oneInFive.map((isTry) => !isTry),
      units,
      max: fc.constantFrom(100, 100, 100, 1, 2),
    }),
  },
  { weight: 9, arbitrary: fc.record({ kind: fc.constant('release'), hold: holdOrNext, tombstone: oneInFive }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('renew'), hold: holdOrNext, units, fence }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('transfer'), hold, units }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('forceRelease'), fence }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('leave'), process: fc.nat(count.processes - 1) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('listen'), process: fc.nat(count.processes - 1) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('pass'),
      ms: fc.oneof(fc.constantFrom(10, 500, 999, 1_000, 2_000, 3_000, 11_000), fc.nat(6_000)),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('inspect') }) },
);
/** Of the holds of a key: alike in most plays, and mixed in the others. */
const modes = fc.constantFrom<readonly (LockMode | number)[]>(
  ['read', 'write'],
  ['read', 'write'],
  [1],
  [2],
  [3],
  ['read', 'write', 1, 2, 2, 3],
);
const cast: fc.Arbitrary<Cast> = modes.chain((ofKey) =>
  fc.record({
    holds: fc.array(
      fc.record({
        owner: fc.constantFrom(...owners),
        nextOwner: fc.constantFrom(...owners, 'V'),
        process: fc.nat(count.processes - 1),
        claimUnits: units,
        mode: fc.constantFrom(...ofKey),
        priority: fc.constantFrom(0, 0, 0, 100, 1, -1, -100),
      }),
      { minLength: count.holds, maxLength: count.holds },
    ),
    steps: fc.array(step, { minLength: 1, maxLength: 40, size: 'max' }),
  }),
);

/**
 * A play that was found to differ once. `T@1 read -100 x3` is a hold of owner T in process 1 with a priority and three units;
 * `+1` queues hold 1, `try 1`, `-1` and `force` are what they say, a number passes.
 */
function play(cast: string, plan: string): [Cast] {
  const parts = cast.split(', ').map((words) => /^(\S+)@(\d) (\w+) ?(-?\d+)? ?x?(\d)?$/.exec(words)!.slice(1));
  const holds = Array.from({ length: count.holds }, (_, i) => {
    const [owner = '0', process = 0, mode = 'read', priority = 0, units = 1] = parts[i] ?? [];
    return {
      ...{ owner, nextOwner: `next-${i}`, process: Number(process), mode: mode as LockMode },
      ...{ priority: Number(priority), claimUnits: Number(units) },
    };
  });
  const steps = plan.split(', ').map((words): Step => {
    const hold = Number(words.at(-1));
    if (words === 'force') return { kind: 'forceRelease', fence: 'last' };
    if (words.startsWith('leave')) return { kind: 'leave', process: hold };
    if (words.startsWith('-')) return { kind: 'release', hold, tombstone: true };
    if (/^\d/.test(words)) return { kind: 'pass', ms: Number(words) };
    return { kind: 'acquire', hold, queue: words.startsWith('+'), units: holds[hold]?.claimUnits ?? 1, max: 100 };
  });
  return [{ holds, steps }];
}

/** What a process is owed or passed over for, after a claim that it let lapse. */
const found = [
  // It polls while others of its owner hold on.
  play('0@0 read, 0@0 read, 1@0 write', 'leave 0, try 2, +1, try 0, 997, +2, 998, try 0, try 2, force, try 0'),
  // A call of its own that is no poll finds the claim over.
  play(
    '0@0 read, 0@0 write, 2@1 write, 1@0 read',
    'try 3, +1, +0, leave 0, 26, -1, try 0, +2, 965, +3, 29, try 0, try 3, -2, -0',
  ),
  // It asks for what it waits for, without being queued.
  play('0@0 read, 0@1 read, 1@1 write 0 x4, 0@0 write', 'try 2, 3000, +1, 998, +2, try 3, 998, try 2, -0'),
  // It gives back the claim itself.
  play('1@1 write -100, 0@0 read 0 x2, 1@1 read, 0@0 read', 'try 3, +0, +2, try 1, 999, -2, 1000, -3, 10'),
  // A waiter of one degree more comes twelve seconds later: ten of them count.
  play(
    '0@0 write 0 x5, 1@0 write, 2@1 write 1, 0@0 write 0 x5, 0@0 write 0 x5',
    'try 0, +1, 4000, try 3, 4000, try 4, 4000, +2',
  ),
  // A waiter of one degree more comes eight seconds later, and has its turn first.
  play('0@0 write 0 x5, 1@0 write, 2@1 write 1, 0@0 write 0 x5', 'try 0, +1, 4000, try 3, 4000, +2'),
  // Its own poll grants its ancestor and a sibling, and so lets it advance before a stranger.
  play('U@0 write, T@0 write, V@0 write, T/1@0 write, T/2@0 write', 'try 0, +1, +2, +3, +4, 1000, +4'),
  // A writer within a reader of a row advances, and so ends the row.
  play('W@0 write, U@0 read, T@0 read, V@0 read, T/1@0 write', 'try 0, +1, +2, +3, +4, -0, -1, -2, -4'),
  // A reader beside readers comes before a waiting writer, by its priority.
  play('T@0 read, U@0 write, V@1 read 1', 'try 0, +1, +2, -0, -2'),
  // A claim gets another hold of its family by the same call: it is not alone.
  play('U@0 write, V@0 read, T/1@0 read, T@0 read', 'try 0, +1, +2, 1000, try 3'),
  // It is granted by its own call meanwhile.
  play(
    '0@1 read, 2@1 write, 1@1 read 0 x3, 0@1 read',
    'try 0, +1, force, +2, +0, force, +1, 997, try 2, +0, 1999, -3, force, -4',
  ),
];

/** Plays the steps on one store, and writes down what it answered and told. */
class Play {
  readonly #store: LockStore;
  readonly #id: string;
  readonly #cast: Cast;
  readonly #pass: (ms: number) => unknown;
  readonly #told: StoreMessage[][] = [[], []];
  readonly #fences = new Set<number>();
  readonly #grantedFences = new Map<number, number>();
  /** Those that were released: a repeated release may return the first status, or `absent`. */
  readonly #released = new Set<number>();
  readonly #unsubscribe = new Map<number, Unsubscribe>();

  constructor(store: LockStore, id: string, cast: Cast, pass: (ms: number) => unknown) {
    this.#store = store;
    this.#id = id;
    this.#cast = cast;
    this.#pass = pass;
  }

  /** Answers, messages and the last state, with fences as ranks and times as what is left, or has passed. */
  async run(): Promise<unknown> {
    await this.#listen(0);
    await this.#listen(1);
    const answers: unknown[] = [];
    for (const step of this.#cast.steps) answers.push(await this.#step(step));
    answers.push(await this.#look());
    await this.#hearAll();
    for (const process of [0, 1]) await this.#leave(process);
    const ranks = [...this.#fences].sort((a, b) => a - b);
    const told = this.#told.map((messages) => inOrderSent(messages).map((message) => this.#plain(message)));
    return JSON.parse(JSON.stringify({ answers, told }), (name, value: unknown) =>
      name === 'fence' ? ranks.indexOf(value as number) : value,
    );
  }

  async #step(step: Step): Promise<unknown> {
    // No two steps are at the same time: who came first would be left to chance.
    await this.#pass(step.kind === 'pass' ? step.ms : 1);
    if (step.kind === 'pass') return null;
    if (step.kind === 'inspect') return this.#look();
    if (step.kind === 'listen') return this.#listen(step.process);
    if (step.kind === 'leave') return this.#leave(step.process);
    if (step.kind === 'forceRelease') return this.#store.forceRelease(this.#id, this.#fence(step.fence, 0));
    const request = this.#request(step.hold);
    if (step.kind === 'release') {
      const reply = await this.#store.release(request, { tombstoneMs: step.tombstone ? 3 * unitMs : 0 });
      const isRepeat = this.#released.has(step.hold);
      this.#released.add(step.hold);
      return this.#plain(isRepeat ? { ...reply, status: 'absent' } : reply);
    }
    const leaseMs = step.units * unitMs;
    if (step.kind === 'transfer') {
      const next = this.#request(step.hold + count.holds);
      const reply = await this.#store.transfer?.(request, next, { leaseMs, tombstoneMs: 3 * unitMs });
      if (reply?.status === 'granted') {
        this.#grantedFences.set(step.hold + count.holds, reply.grant.fence);
        this.#released.add(step.hold);
      }
      return this.#plain(reply ?? {});
    }
    if (step.kind === 'renew') {
      return this.#plain(await this.#store.renew(request, { leaseMs, fence: this.#fence(step.fence, step.hold) }));
    }
    const terms = { leaseMs, queue: step.queue, maxWaiters: step.max, livenessMs };
    const reply = await this.#store.acquire(request, terms);
    if (reply.status === 'granted') this.#grantedFences.set(step.hold, reply.grant.fence);
    // Only a store whose calls may get lost says this.
    return this.#plain({ ...reply, mayArriveLater: undefined });
  }

  async #look(): Promise<unknown> {
    const { nowMs, holds, waiters, permits } = await this.#store.inspect(this.#id);
    const told = waiters.map(({ sinceMs, ...waiter }) => ({ ...waiter, waitedMs: nowMs - sinceMs }));
    return this.#plain({ nowMs, permits, holds: inAnyOrder(holds), waiters: told });
  }

  #request(hold: number): HoldRequest {
    const { owner, nextOwner, process, claimUnits, mode, priority } = this.#cast.holds[hold % count.holds]!;
    return {
      id: this.#id,
      holdId: `${this.#id}-hold-${hold}`,
      owner: hold < count.holds ? owner : nextOwner,
      process: this.#process(process),
      claimMs: claimUnits * unitMs,
      mode: typeof mode === 'number' ? 'permit' : mode,
      permits: typeof mode === 'number' ? mode : undefined,
      priority,
    };
  }

  #process(process: number): string {
    return `${this.#id}-process-${process}`;
  }

  #fence(which: Fence, hold: number): number {
    if (which === 'never') return 1;
    const last = Math.max(1, ...this.#fences);
    return which === 'granted' ? (this.#grantedFences.get(hold) ?? last) : last;
  }

  async #listen(process: number): Promise<void> {
    if (this.#unsubscribe.has(process)) return;
    const unsubscribe = await this.#store.subscribe(this.#process(process), (message) => {
      if (message.kind === 'granted' || message.kind === 'lost') this.#told[process]!.push(message);
    });
    this.#unsubscribe.set(process, unsubscribe);
  }

  async #leave(process: number): Promise<void> {
    if (!this.#unsubscribe.has(process)) return;
    // First what was sent to it until now.
    await this.#hear(process);
    await this.#unsubscribe.get(process)?.();
    this.#unsubscribe.delete(process);
  }

  async #hearAll(): Promise<void> {
    for (const process of this.#unsubscribe.keys()) await this.#hear(process);
  }

  /** Awaits a last message; the stream is in order. */
  async #hear(process: number): Promise<void> {
    const last = { ...this.#request(0), id: `${this.#id}-last`, holdId: randomUUID(), process: this.#process(process) };
    const reply = await this.#store.acquire(last, { leaseMs: unitMs, queue: false, maxWaiters: 1, livenessMs: unitMs });
    if (reply.status !== 'granted') throw new Error('The key of the last message must be free');
    await this.#store.forceRelease(last.id, reply.grant.fence);
    const messages = this.#told[process]!;
    const isLast = (message: StoreMessage) => message.kind === 'lost' && message.holdId === last.holdId;
    await until(() => messages.some(isLast));
    messages.splice(messages.findIndex(isLast), 1);
  }

  /** Without times, but for what is left of a lease when the answer was given. A lease that was over may be forgotten. */
  #plain(value: object): unknown {
    const nowMs = (value as { nowMs?: number }).nowMs ?? 0;
    return JSON.parse(JSON.stringify(value), (name, part: unknown) => {
      if (name === 'fence') this.#fences.add(part as number);
      if (name === 'nowMs') return undefined;
      if (name === 'endMs') return nowMs === 0 ? undefined : (part as number) - nowMs;
      if (name === 'status' && part === 'expired') return 'absent';
      if (name === 'claims') return inAnyOrder(part as object[]);
      return part;
    });
  }
}

/** The messages of a process. Those next to each other about holds that were taken, or granted, together have no order. */
function inOrderSent(messages: readonly StoreMessage[]): readonly StoreMessage[] {
  const groups: StoreMessage[][] = [];
  const groupOf = (message: StoreMessage): unknown => (message.kind === 'granted' ? message.grant.fence : message.kind);
  for (const message of messages) {
    const last = groups.at(-1);
    if (last !== undefined && groupOf(last[0] as StoreMessage) === groupOf(message)) last.push(message);
    else groups.push([message]);
  }
  return groups.flatMap(inAnyOrder);
}

/** No order is promised of holds that were taken or granted together. */
function inAnyOrder<T extends object>(parts: readonly T[]): readonly T[] {
  return [...parts].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

/** A server's time that only goes on when a test says so. */
class ServerClock {
  #nowMs = 1_700_000_000_000;
  readonly #set: (us: number) => Promise<unknown>;

  constructor(set: (us: number) => Promise<unknown>) {
    this.#set = set;
  }

  async pass(ms: number): Promise<void> {
    this.#nowMs += ms;
    await this.#set(this.#nowMs * 1_000);
  }
}

/** The clock of a Redis server, for the scripts of one client. */
function redisClock(client: Redis): ServerClock {
  runTimed(client);
  return new ServerClock((us) => setScriptTime(client, us));
}

/** The clock of a PostgreSQL server: the one function that reads it reads a table. */
async function postgresClock(pool: Pool): Promise<ServerClock> {
  await pool.query('CREATE TABLE public.now (us bigint); INSERT INTO public.now VALUES (0)');
  await pool.query(
    'CREATE OR REPLACE FUNCTION reenlock.now_us() RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT us FROM public.now $$',
  );
  return new ServerClock((us) => pool.query('UPDATE public.now SET us = $1', [us]));
}

/** Plays many casts on a store and in memory. */
async function expectAsInMemory(
  store: LockStore,
  server: ServerClock,
  casts: fc.Arbitrary<Cast>,
  examples: [Cast][],
): Promise<void> {
  let handOffs = 0;
  await fc.assert(
    fc.asyncProperty(casts, async (play) => {
      const id = `run-${randomUUID()}`;
      const clock = new ManualClock();
      const memory = new Play(new MemoryStore({ clock }), id, play, (ms) => clock.skip(ms));
      const expected = await memory.run();
      const actual = await new Play(store, id, play, (ms) => server.pass(ms)).run();
      handOffs += JSON.stringify(expected).split('"kind":"granted"').length - 1;
      expect(actual).toEqual(expected);
    }),
    { seed, numRuns: runs, examples },
  );
  // The sequences were not idle: there were hand-offs between the processes.
  expect(handOffs).toBeGreaterThan(runs / 40);
}

describe('MemoryStore and RedisStore', () => {
  const stage = useRedis();

  it(
    'Both stores give the same replies, fences, queues, claims and messages in any sequence of operations, as time passes',
    async () => {
      const client = stage.connect();
      stage.store = new RedisStore({ client });
      // So that the channel's connection stays open from run to run.
      await stage.process();
      await expectAsInMemory(stage.store, redisClock(client), cast, found);
    },
    timeoutMs,
  );
});

describe('MemoryStore and PostgresStore', () => {
  const stage = usePostgres();

  it(
    'Both stores give the same replies, fences, queues, claims and messages in any sequence of operations, as time passes',
    async () => {
      // So that the channel's connection stays open from run to run.
      await stage.process();
      await expectAsInMemory(stage.store, await postgresClock(stage.pool), cast, found);
    },
    timeoutMs,
  );
});
