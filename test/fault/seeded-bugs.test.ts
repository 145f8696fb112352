import { type Clock, systemClock } from '../../src/core/base/clock.ts';
import type { HoldRequest, LockStore } from '../../src/core/model/store.ts';
import { buildLocks } from '../../src/core/runtime/locks.ts';
import { RedisStore } from '../../src/stores/redis/redis-store.ts';
import { ManualClock } from '../support/clock/manual-clock.ts';
import { pathOf } from '../support/path-of.ts';
import { useRedis } from '../support/redis/redis-stage.ts';
import { FakeStore } from '../support/stores/fake-store.ts';
import { until } from '../support/until.ts';
import { type Entry, type Rules, type Violation, violationsOf } from './history.ts';
import { type Held, Recorder } from './recorder.ts';
import {
  CountedHolds,
  handOffToTheDead,
  NoElapsedCheck,
  NoPoll,
  PassThrough,
  PlainCounter,
  releaseWithoutOwnerCheck,
  renewalThatRecreates,
  type ScriptBug,
  withScriptBug,
} from './seeded-bugs.ts';

const key = 'order:42';

type Broken = Violation['rule'][];

function rulesOf(entries: readonly Entry[], rules: Rules = {}): Broken {
  return [...new Set(violationsOf(entries, rules).map(({ rule }) => rule))];
}

/** Several processes in this one, on one store and a clock that tests drive. */
class Rig<S extends LockStore & { readonly clock?: Clock }> {
  readonly clock = new ManualClock();
  readonly fake = new FakeStore(this.clock);
  readonly store: S;
  readonly entries: Entry[] = [];
  readonly #recorders: Recorder[] = [];

  constructor(build: (store: LockStore, clock: ManualClock) => S) {
    this.store = build(this.fake, this.clock);
  }

  process(): Recorder {
    const name = 'abc'[this.#recorders.length] as string;
    const recorder = new Recorder(
      name,
      () => this.clock.now().monoMs,
      (entry) => this.entries.push(entry),
    );
    recorder.follow(buildLocks({ store: recorder.watched(this.store) }, this.store.clock ?? this.clock));
    this.#recorders.push(recorder);
    return recorder;
  }

  /** Gives back what is left, and closes all. */
  async end(rules?: Rules): Promise<Broken> {
    const broken = rulesOf(this.entries, rules);
    this.fake.heal();
    for (const { locks } of this.#recorders) {
      const closing = locks.close({ drainMs: 0 });
      await this.clock.advance(70_000);
      await closing;
    }
    return broken;
  }
}

/** What became of an acquire, when the clock is driven by the test. */
function grantOf(acquired: Promise<Held>): { held?: Held } {
  const outcome: { held?: Held } = {};
  acquired.then(
    (held) => {
      outcome.held = held;
    },
    () => {},
  );
  return outcome;
}

const honest = (store: LockStore): PassThrough => new PassThrough(store);

describe('The history of a store with a seeded bug', () => {
  async function releasedTwice(build: (store: LockStore) => PassThrough): Promise<Broken> {
    const rig = new Rig(build);
    const [a, b, c] = [rig.process(), rig.process(), rig.process()];
    const first = await a.acquire(key, {}, 'shared');
    const inner = await b.acquire(key, {}, 'shared');
    const request = rig.store.requestOf('shared');
    const own = { ...request, holdId: first.id };
    await rig.clock.advance(10);
    await first.release();
    // The connection broke, and the client library sent it again.
    await rig.store.release(own, { tombstoneMs: 6_000 });
    const stranger = grantOf(c.acquire(key, { waitMs: 100 }));
    await rig.clock.advance(10);
    await inner.release().catch(() => {});
    await rig.clock.advance(10);
    await stranger.held?.release();
    return rig.end();
  }

  it('Holds counted instead of named: a release that is sent twice lets a second owner in', async () => {
    expect(await releasedTwice((store) => new CountedHolds(store))).toEqual(['overlap']);
    expect(await releasedTwice(honest)).toEqual([]);
  });

  async function answeredLate(build: (store: LockStore, clock: ManualClock) => PassThrough): Promise<Broken> {
    const rig = new Rig(build);
    const [a, b] = [rig.process(), rig.process()];
    rig.fake.next('acquire', { kind: 'lateReply', ms: 1_500 });
    const late = grantOf(a.acquire(key, { leaseMs: 1_000 }));
    await rig.clock.advance(1_100);
    const next = await b.acquire(key);
    await rig.clock.advance(500);
    await late.held?.release().catch(() => {});
    await next.release();
    return rig.end();
  }

  it('No elapsed check: a grant whose reply arrived after its lease is believed', async () => {
    const broken = await answeredLate((store, clock) => new NoElapsedCheck(store, clock));
    expect(broken).toContain('overlap');
    expect(await answeredLate(honest)).toEqual([]);
  });

  async function unheard(build: (store: LockStore) => PassThrough): Promise<Broken> {
    const rig = new Rig(build);
    const [a, b] = [rig.process(), rig.process()];
    const first = await a.acquire(key);
    const waiter = grantOf(b.acquire(key));
    await rig.clock.advance(1);
    rig.fake.isMute = true;
    await first.release();
    await rig.clock.advance(20_000);
    await waiter.held?.release();
    return rig.end({ wakeMs: 1_300 });
  }

  it('No poll: a lost message is never replaced', async () => {
    expect(await unheard((store) => new NoPoll(store))).toEqual(['wake-up']);
    expect(await unheard(honest)).toEqual([]);
  });

  async function forgotten(build: (store: LockStore) => PassThrough): Promise<Broken> {
    const rig = new Rig(build);
    const a = rig.process();
    for (let n = 0; n < 2; n++) {
      const held = await a.acquire(key);
      await rig.clock.advance(1);
      await held.release();
    }
    await rig.fake.forget();
    if (rig.store instanceof PlainCounter) rig.store.reset();
    const held = await a.acquire(key);
    await rig.clock.advance(1);
    await held.release();
    return rig.end();
  }

  it('Fence from a plain counter: after the store lost its data, an old fence is given again', async () => {
    expect(await forgotten((store) => new PlainCounter(store))).toEqual(['fence']);
    expect(await forgotten(honest)).toEqual([]);
  });

  async function leftWhileWorking(isReleasedOnClose: boolean): Promise<Broken> {
    const rig = new Rig(honest);
    const [a, b] = [rig.process(), rig.process()];
    const working = await a.acquire(key, {}, 'request');
    const next = grantOf(b.acquire(key));
    await rig.clock.advance(1);
    // The client hangs up; the handler has not ended.
    if (isReleasedOnClose) await rig.store.release(rig.store.requestOf('request'), { tombstoneMs: 6_000 });
    await rig.clock.advance(100);
    await working.release().catch(() => {});
    await rig.clock.advance(100);
    await next.held?.release();
    return rig.end();
  }

  it("release on `close`: the client's leaving lets the next one in while the handler works", async () => {
    expect(await leftWhileWorking(true)).toEqual(['overlap']);
    expect(await leftWhileWorking(false)).toEqual([]);
  });
});

describe('The history of a script with a seeded bug', () => {
  const redis = useRedis();

  interface Scene {
    readonly store: PassThrough;
    readonly processes: readonly Recorder[];
  }

  async function play(
    bug: ScriptBug | undefined,
    rules: Rules,
    scene: (scene: Scene) => Promise<void>,
  ): Promise<Broken> {
    await redis.client.flushall();
    const entries: Entry[] = [];
    const client = bug === undefined ? redis.client : withScriptBug(redis.client, bug);
    const store = new PassThrough(new RedisStore({ client }));
    const processes = ['a', 'b', 'c'].map((name) => {
      const recorder = new Recorder(
        name,
        () => performance.now(),
        (entry) => entries.push(entry),
      );
      const settings = { store: recorder.watched(store), pollMs: 100 };
      recorder.follow(buildLocks(settings, systemClock));
      return recorder;
    });
    try {
      await scene({ store, processes });
    } finally {
      for (const { locks } of processes) await locks.close({ drainMs: 0 });
    }
    return rulesOf(entries, rules);
  }

  /** Two wait for `a`; it gives the key back, and something of its comes late, while `b` holds. */
  const comesLate =
    (late: (store: PassThrough, request: HoldRequest, fence: number) => Promise<unknown>) =>
    async ({ store, processes }: Scene) => {
      const [a, b, c] = processes as [Recorder, Recorder, Recorder];
      const first = await a.acquire(key);
      const request = store.requestOf(pathOf(first.hold));
      const second = b.acquire(key);
      await until(async () => (await store.inspect(key)).waiters.length === 1);
      const third = c.acquire(key);
      third.catch(() => {});
      await until(async () => (await store.inspect(key)).waiters.length === 2);
      await first.release();
      const held = await second;
      await late(store, request, first.hold.fence);
      // Gives a process that was let in the time to say so.
      await Promise.race([third, redis.client.ping().then(() => new Promise((resolve) => setTimeout(resolve, 300)))]);
      await held.release().catch(() => {});
      await (await third).release().catch(() => {});
    };

  it('Release without an owner check: a late one takes the next hold away', async () => {
    const scene = comesLate((store, request) => store.release(request, { tombstoneMs: 6_000 }));
    expect(await play(releaseWithoutOwnerCheck, {}, scene)).toContain('overlap');
    expect(await play(undefined, {}, scene)).toEqual([]);
  });

  it('Renewal that re-creates: a late one takes the key from its present holder', async () => {
    const scene = comesLate((store, request, fence) => store.renew(request, { fence, leaseMs: 50 }));
    expect(await play(renewalThatRecreates, {}, scene)).toContain('overlap');
    expect(await play(undefined, {}, scene)).toEqual([]);
  });

  it('Hand-off to the dead: the waiter behind a dead process waits for its claim', async () => {
    const scene = async ({ store, processes }: Scene): Promise<void> => {
      const [a, b] = processes as [Recorder, Recorder];
      const first = await a.acquire(key);
      const dead = {
        id: key,
        holdId: 'of-the-dead',
        owner: 'dead',
        process: 'dead',
        claimMs: 60_000,
        mode: 'write',
        priority: 0,
      } as const;
      const terms = { leaseMs: 60_000, queue: true, maxWaiters: 10, livenessMs: 60_000 };
      await store.acquire(dead, terms);
      const waiter = b.acquire(key, { waitMs: 1_000 }).then(
        (held) => held.release(),
        () => {},
      );
      await until(async () => (await store.inspect(key)).waiters.length === 2);
      await first.release();
      await waiter;
      await store.release(dead, { tombstoneMs: 0 });
    };
    expect(await play(handOffToTheDead, { maxPolls: 2 }, scene)).toEqual(['wake-up']);
    expect(await play(undefined, { maxPolls: 2 }, scene)).toEqual([]);
  });
});
