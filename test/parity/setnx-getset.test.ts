import { EventEmitter, once } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import { createLocks, getLock, LockTimeoutError, lock, runInTrace } from 'reenlock';
import { type CasAdapter, type CasReading, CasStore } from 'reenlock/redis';
import { longMs, shortMs } from '../../src/testing/contract/harness.ts';
import { key, type Line, StoreStage } from '../../src/testing/contract/stage.ts';
import { pathOf } from '../support/path-of.ts';
import { describeCasServers } from '../support/stores/cas-servers.ts';
import { MapCas } from '../support/stores/map-cas.ts';

describeCasServers('a SETNX/GETSET lock', (newAdapter) => {
  /** A client of the lock, with connections of its own. */
  function client(adapter: CasAdapter = newAdapter()): StoreStage {
    const stage = new StoreStage();
    stage.store = new CasStore({ adapter });
    return stage;
  }

  function line(stage: StoreStage): Line {
    return stage.deafProcess().line();
  }

  /** Polls until the server's clock has ended somebody's lease. */
  async function takeOver(taker: Line): Promise<void> {
    while ((await taker.try()).status !== 'granted');
  }

  it('SETNX takes a free key', async () => {
    const [one, two] = [client(), client()];
    const holder = line(one);
    await holder.hold();
    expect((await line(two).try()).status).toBe('refused');
    await holder.release();
    expect((await line(two).try()).status).toBe('granted');
  });

  it("a holder that crashed is taken over once its time is past, by the server's clock", async () => {
    const crashed = line(client());
    const { fence, endMs } = await crashed.hold({ leaseMs: shortMs });
    const taker = line(client());
    // A client whose clock is ahead takes nothing over.
    jest.spyOn(Date, 'now').mockReturnValue(Date.UTC(2099, 0, 1));
    await takeOver(taker);
    jest.restoreAllMocks();
    const reply = await taker.ask();
    expect(reply.nowMs).toBeGreaterThanOrEqual(endMs);
    expect((await taker.hold()).fence).toBeGreaterThan(fence);
  });

  it('two clients that both saw it expired (the DEL/SETNX race): exactly one may win, of 5 in 300 rounds', async () => {
    const contenders = Array.from({ length: 5 }, () => newAdapter());
    // Races for keys of their own go on at the same time: each is one after the other, and most of it is waiting.
    const races = Array.from({ length: 6 }, (_, index) => compete(contenders, `order:${index}`, 50));
    const rounds = (await Promise.all(races)).flat();
    expect(rounds).toHaveLength(300);
    // All of them saw the same record: none, or one whose holder's time is past.
    const fair = { readers: 5, records: 1, granted: 1, refused: 4, isWinnerHolder: true, isFenceHigher: true };
    expect(rounds.filter((round) => !isDeepStrictEqual(round, fair))).toEqual([]);
  });

  async function compete(adapters: readonly CasAdapter[], id: string, rounds: number): Promise<object[]> {
    const race = new Race(adapters.length);
    const contenders = adapters.map((adapter) => client(race.adapter(adapter)));
    const told: object[] = [];
    for (let last = 0; told.length < rounds; ) {
      race.begin();
      const lines = contenders.map((contender) => contender.deafProcess().line(undefined, { id }));
      const replies = await Promise.all(lines.map((contender) => contender.try()));
      const winners = lines.filter((_, index) => replies[index]!.status === 'granted');
      const { holds } = await contenders[0]!.inspect(id);
      told.push({
        readers: race.seen.length,
        records: new Set(race.seen).size,
        granted: winners.length,
        refused: replies.filter(({ status }) => status === 'refused').length,
        isWinnerHolder: holds.length === 1 && holds[0]!.holdId === winners[0]?.holdId,
        isFenceHigher: holds[0]!.fence > last,
      });
      last = holds[0]!.fence;
    }
    return told;
  }

  it("release of somebody else's lock (plain DEL after a takeover) is refused", async () => {
    const stale = line(client());
    await stale.hold({ leaseMs: shortMs });
    const taker = line(client());
    await takeOver(taker);
    expect((await stale.release(longMs)).status).toBe('absent');
    expect((await client().order()).holds).toEqual([taker.holdId]);
  });

  it('a stale holder renews nothing, and its fence is behind', async () => {
    const stale = line(client());
    const { fence } = await stale.hold({ leaseMs: shortMs });
    const taker = line(client());
    await takeOver(taker);
    expect(await stale.renew(fence)).toEqual({ status: 'lost' });
    expect((await taker.hold()).fence).toBeGreaterThan(fence);
  });

  it('after failure: retry or give up, the caller decides', async () => {
    const [one, two] = [newAdapter(), newAdapter()].map((adapter) =>
      createLocks({ store: new CasStore({ adapter }), pollMs: 100 }),
    ) as [ReturnType<typeof createLocks>, ReturnType<typeof createLocks>];
    await runInTrace(
      async () => {
        const hold = await lock.acquire(key);
        await runInTrace(
          async () => {
            expect(await lock.tryAcquire(key)).toBeNull();
            await expect(lock.acquire(key, { waitMs: 50 })).rejects.toThrow(LockTimeoutError);
            const waits = new Promise((resolve) => two.on('waiting', resolve));
            const patient = lock.acquire(key);
            await waits;
            await hold.release();
            expect((await patient).fence).toBeGreaterThan(hold.fence);
          },
          { locks: two, traceId: 'other' },
        );
      },
      { locks: one },
    );
    await Promise.all([one.close(), two.close()]);
  });

  it('requests of several processes are served in order, one at a time', async () => {
    const processes = [1, 2, 3].map(() => createLocks({ store: new CasStore({ adapter: newAdapter() }), pollMs: 100 }));
    const order: number[] = [];
    let inside = 0;
    const queued = new EventEmitter();
    for (const locks of processes) locks.on('waiting', () => queued.emit('waiting'));
    const first = await runInTrace(
      async () => {
        const hold = await lock.acquire(key);
        const jobs: Promise<void>[] = [];
        for (let job = 0; job < 12; job++) {
          const waits = once(queued, 'waiting');
          const work = async () => {
            expect(++inside).toBe(1);
            order.push(job);
            await new Promise((resolve) => setImmediate(resolve));
            inside -= 1;
          };
          jobs.push(runInTrace(() => getLock(key).run(work), { locks: processes[job % 3]!, traceId: `job-${job}` }));
          await waits;
        }
        await hold.release();
        return jobs;
      },
      { locks: processes[0]! },
    );
    await Promise.all(first);
    expect(order).toEqual(Array.from({ length: 12 }, (_, job) => job));
    await Promise.all(processes.map((locks) => locks.close()));
  });
});

describe('a lock of any store with compare-and-set', () => {
  it('storage by get, then set-if-absent or compare-and-set of {trace: count}', async () => {
    const adapter = new MapCas();
    const locks = createLocks({ store: new CasStore({ adapter }) });
    const holdersOf = async () => (await getLock(key).inspect()).holds.map((each) => pathOf(each));
    await runInTrace(
      async () => {
        const outer = await lock.acquire(key);
        expect(adapter.names).toEqual(['read', 'create']);
        adapter.calls.length = 0;
        // The same trace in another service: count + 1.
        await runInTrace(
          async () => {
            await lock.run(key, async () => {
              expect(adapter.names).toEqual(['read', 'replace']);
              expect(await holdersOf()).toEqual(['trace-1', 'trace-1']);
            });
          },
          { locks, traceId: 'trace-1' },
        );
        expect(await holdersOf()).toEqual(['trace-1']);
        const another = await runInTrace(() => lock.tryAcquire(key), { locks, traceId: 'trace-2' });
        expect(another).toBeNull();
        await outer.release();
        expect(await holdersOf()).toEqual([]);
      },
      { locks, traceId: 'trace-1' },
    );
    await locks.close();
  });
});

/** Rounds in which all contenders have read before any writes, a lease apart on the server's clock. */
class Race {
  /** What the contenders of this round read. */
  seen: (string | undefined)[] = [];
  readonly #count: number;
  #waiting: (() => void)[] = [];
  #shiftUs = 0;

  constructor(count: number) {
    this.#count = count;
  }

  /** Lets the time of a lease pass, without waiting for it. */
  begin(): void {
    this.seen = [];
    this.#shiftUs += (longMs + 1_000) * 1_000;
  }

  adapter(server: CasAdapter): CasAdapter {
    return {
      read: async (at) => this.#meet(await server.read(at)),
      create: (at, value, ttlMs) => server.create(at, value, ttlMs),
      replace: (at, old, value, ttlMs) => server.replace(at, old, value, ttlMs),
      remove: (at, old) => server.remove(at, old),
    };
  }

  async #meet(reading: CasReading): Promise<CasReading> {
    if (this.seen.length < this.#count) {
      this.seen.push(reading.value);
      if (this.seen.length < this.#count) await new Promise<void>((resolve) => this.#waiting.push(resolve));
      else for (const go of this.#waiting.splice(0)) go();
    }
    return { ...reading, nowUs: reading.nowUs + this.#shiftUs };
  }
}
