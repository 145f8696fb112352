import { CasStore, type CasStoreOptions } from 'reenlock/redis';
import { LockStoreError } from '../../../src/core/model/errors/failures.ts';
import { LockConfigError } from '../../../src/core/model/errors/mistakes.ts';
import type { StoreMessage } from '../../../src/core/model/store.ts';
import { longMs } from '../../../src/testing/contract/harness.ts';
import { key, StoreStage } from '../../../src/testing/contract/stage.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { gate } from '../../support/gate.ts';
import { MapCas } from '../../support/stores/map-cas.ts';

const hourMs = 3_600_000;
const at = `reenlock:${key}`;

describe('CasStore', () => {
  let adapter: MapCas;
  let clock: ManualClock;
  const stage = new StoreStage();
  beforeEach(() => {
    adapter = new MapCas();
    clock = new ManualClock();
    stage.store = new CasStore({ adapter }, clock);
  });
  afterEach(async () => {
    await stage.end();
    expect(clock.timerCount).toBe(0);
  });

  /** Another process on the same server. */
  function other(): StoreStage {
    const elsewhere = new StoreStage();
    elsewhere.store = new CasStore({ adapter }, clock);
    return elsewhere;
  }

  /** Before each of the next writes, somebody else is faster. */
  function beFaster(times: number): void {
    let left = times;
    adapter.before = (operation) => {
      if (operation === 'read' || left === 0) return;
      left -= 1;
      const text =
        adapter.texts.get(at) ??
        '{"version":1,"untilMs":0,"lastFence":0,"holds":[],"queue":[],"processes":[],"gone":[]}';
      adapter.texts.set(
        at,
        text.replace(/"version":\d+/, (found) => `${found}0`),
      );
    };
  }

  it('A record names no process that no longer waits', async () => {
    const [one, two] = [stage.deafProcess(), stage.deafProcess()];
    await one.line().hold();
    const waiters = [await one.line().wait(), await two.line().wait()];
    expect(adapter.texts.get(at)).toContain(`["${two.name}",`);
    await waiters[1]!.release();
    expect(adapter.texts.get(at)).toContain(`["${one.name}",`);
    expect(adapter.texts.get(at)).not.toContain(two.name);
  });

  describe('A conflict', () => {
    it('A call that lost a write computes again from the present record, and never overwrites it', async () => {
      const process = stage.deafProcess();
      const rival = other().deafProcess().line();
      let isFirst = true;
      adapter.before = async (operation) => {
        if (operation !== 'create' || !isFirst) return;
        isFirst = false;
        await rival.hold();
      };
      const reply = process.line().try();
      await clock.advance(1);
      expect((await reply).status).toBe('refused');
      expect((await stage.order()).holds).toEqual([rival.holdId]);
    });

    it('A call that lost a write pauses longer with every try, up to 64 ms, with jitter', async () => {
      beFaster(8);
      const reply = stage.deafProcess().line().ask();
      await clock.settle();
      for (const pauseMs of [1, 2, 4, 8, 16, 32, 32, 32]) {
        const before = adapter.names.length;
        await clock.advance(pauseMs - 0.5);
        expect(adapter.names).toHaveLength(before);
        await clock.advance(0.5);
        expect(adapter.names).toHaveLength(before + 2);
      }
      expect((await reply).status).toBe('granted');
    });

    it('A call gives up at `deadlineMs` with nothing applied, and reports how many tries it made', async () => {
      stage.store = new CasStore({ adapter, deadlineMs: 100 }, clock);
      const line = stage.deafProcess().line();
      const reply = line.ask().catch((error: unknown) => error);
      beFaster(Number.POSITIVE_INFINITY);
      await clock.advance(200);
      const error = (await reply) as LockStoreError;
      expect(error).toBeInstanceOf(LockStoreError);
      expect(error).toMatchObject({
        outcome: 'not-applied',
        cause: { message: expect.stringMatching(/^Expected one of [4-9] attempts in \d+ ms to succeed/) },
      });
      adapter.before = () => {};
      expect((await stage.inspect()).holds).toEqual([]);
    });
  });

  describe('A server that does not respond', () => {
    it('If the server does not reply to a read, nothing is applied, and nothing is written when it replies late', async () => {
      const answered = gate();
      adapter.after = () => answered;
      const reply = stage.deafProcess().line().ask();
      await Promise.all([expect(reply).rejects.toMatchObject({ outcome: 'not-applied' }), clock.advance(1_500)]);
      adapter.after = () => {};
      answered.open();
      await clock.settle();
      expect(adapter.names).toEqual(['read']);
    });

    it('If the server does not reply to a write, the outcome is unknown, and the calls behind it go on', async () => {
      adapter.before = (operation) => (operation === 'create' ? new Promise(() => {}) : undefined);
      const line = stage.deafProcess().line();
      const asked = expect(line.ask()).rejects.toMatchObject({ outcome: 'unknown' });
      await clock.settle();
      adapter.before = () => {};
      const released = line.release(longMs);
      await clock.advance(1_500);
      await asked;
      expect((await released).status).toBe('absent');
    });

    it('A late write is not applied after a release of its hold id', async () => {
      await stage.deafProcess().line('owner').hold();
      const written = gate();
      adapter.before = (operation) => (operation === 'replace' ? written : undefined);
      const inner = stage.deafProcess().line('owner');
      await Promise.all([expect(inner.ask()).rejects.toMatchObject({ outcome: 'unknown' }), clock.advance(1_500)]);
      adapter.before = () => {};
      await inner.release(longMs);
      written.open();
      await clock.settle();
      expect((await stage.inspect()).holds).toHaveLength(1);
    });
  });

  it('The adapter decides the outcome of a failed write: certain, or not', async () => {
    const refusal = new LockStoreError('no', { outcome: 'not-applied', cause: new Error('read only') });
    const unknown = new LockStoreError('no', { outcome: 'unknown', cause: new Error('gone') });
    for (const error of [new Error('gone'), unknown, refusal]) {
      adapter.before = (operation) => {
        if (operation !== 'read') throw error;
      };
      const outcome = error === refusal ? 'not-applied' : 'unknown';
      const cause = error instanceof LockStoreError ? error.cause : error;
      await expect(stage.deafProcess().line().ask()).rejects.toMatchObject({ code: 'ERR_LOCK_STORE', outcome, cause });
    }
  });

  it('What the adapter says about a failure, and what to do, is the message that the caller gets', async () => {
    const advice = 'Expected the table of the lock store, but it is missing: create it';
    adapter.before = () => {
      throw new LockStoreError(advice, { outcome: 'not-applied', cause: new Error('no such table') });
    };
    await expect(stage.deafProcess().line().ask()).rejects.toThrow(advice);
  });

  it('Calls of one turn on one key are one read and one write, in their order', async () => {
    const process = stage.deafProcess();
    const lines = Array.from({ length: 20 }, () => process.line());
    const replies = await Promise.all(lines.map((line) => line.ask()));
    expect(replies.map(({ status }) => status)).toEqual(['granted', ...Array(19).fill('queued')]);
    expect(adapter.names).toEqual(['read', 'create']);
    const [first] = lines;
    await Promise.all([first!.release(), ...lines.slice(1).map((line) => line.ask())]);
    expect(adapter.names.slice(2)).toEqual(['read', 'replace']);
    expect((await stage.order()).holds).toEqual([lines[1]!.holdId]);
  });

  it('A call that changes nothing writes nothing', async () => {
    const process = stage.deafProcess();
    expect((await process.line().renew(1)).status).toBe('lost');
    expect((await process.line().release(0)).status).toBe('absent');
    await stage.store.forceRelease(key, 1);
    expect(adapter.texts.size).toBe(0);
    await process.line().hold();
    adapter.calls.length = 0;
    expect((await process.line().try()).status).toBe('refused');
    await process.line().renew(1);
    await process.line().release(0);
    await stage.store.forceRelease(key, 1);
    await stage.inspect();
    expect(new Set(adapter.names)).toEqual(new Set(['read']));
  });

  describe('A record', () => {
    it('A record outlives its lease by an hour', async () => {
      const line = stage.deafProcess().line();
      await line.hold({ leaseMs: 20_000 });
      await line.release(5_000);
      expect(adapter.calls.map(({ ttlMs }) => ttlMs)).toEqual([undefined, 20_000 + hourMs, undefined, 5_000 + hourMs]);
    });

    it('Fences rise even if the clock is set back', async () => {
      const process = stage.deafProcess();
      const first = process.line();
      const { fence } = await first.hold();
      await first.release();
      adapter.nowMs -= 86_400_000;
      const second = process.line();
      expect((await second.hold()).fence).toBe(fence + 1);
      expect(adapter.calls.at(-1)?.ttlMs).toBeGreaterThanOrEqual(86_400_000 + hourMs);
    });

    it('An expired record counts for nothing on a server that never removes it', async () => {
      const process = stage.deafProcess();
      const line = process.line();
      await line.hold({ leaseMs: 1_000 });
      adapter.nowMs += 1_000 + hourMs;
      expect((await line.renew(1)).status).toBe('lost');
      expect(adapter.names.at(-1)).toBe('remove');
      expect(adapter.texts.size).toBe(0);
      await line.hold({ leaseMs: 1_000 });
      adapter.nowMs += 1_000 + hourMs;
      await process.line().hold();
      expect(adapter.names.at(-1)).toBe('replace');
    });

    it('A record is never the same text twice', async () => {
      const line = stage.deafProcess().line('owner');
      const seen = new Set<string>();
      for (let turn = 0; turn < 10; turn++) {
        await line.hold();
        seen.add(adapter.texts.get(at) as string);
        await line.release();
        seen.add(adapter.texts.get(at) as string);
      }
      expect(seen.size).toBe(20);
      // What leaves nothing behind changes it, too: a write that is late must not fit again.
      await line.hold();
      seen.add(adapter.texts.get(at) as string);
      const waiter = stage.deafProcess().line();
      for (let turn = 0; turn < 3; turn++) {
        await waiter.wait();
        seen.add(adapter.texts.get(at) as string);
        await waiter.release();
        seen.add(adapter.texts.get(at) as string);
      }
      expect(seen.size).toBe(27);
    });

    it('A record outlives its waiters by an hour, too', async () => {
      await stage.deafProcess().line().hold({ leaseMs: 1_000 });
      await stage.deafProcess().line().wait({ livenessMs: 7_200_000 });
      expect(adapter.calls.at(-1)?.ttlMs).toBe(7_200_000 + hourMs);
    });

    it('An inspection only reads, even if a part of the record has expired', async () => {
      const line = stage.deafProcess().line();
      await line.hold();
      await line.release(5_000);
      adapter.nowMs += 6_000;
      adapter.calls.length = 0;
      await stage.inspect();
      expect(adapter.names).toEqual(['read']);
    });

    it('A record remembers the newest 128 releases, and forgets them in time', async () => {
      const process = stage.deafProcess();
      const lines = Array.from({ length: 130 }, () => process.line());
      for (const line of lines) await line.release(longMs);
      const remembered = () => (JSON.parse(adapter.texts.get(at) ?? '{"gone":[]}') as { gone: unknown[] }).gone.length;
      expect(remembered()).toBe(128);
      expect((await lines[129]!.ask()).status).toBe('cancelled');
      expect((await lines[2]!.ask()).status).toBe('cancelled');
      adapter.nowMs += longMs;
      expect((await lines[2]!.ask()).status).toBe('granted');
      expect(remembered()).toBe(0);
    });

    const fenceless = '{"version":1,"untilMs":9e15,"holds":[],"queue":[],"processes":[],"gone":[]}';
    it.each(['', 'null', '[]', '{"version":1}', fenceless, 'a lock of somebody else'])(
      'A record of another origin is refused and left alone (%j)',
      async (text) => {
        adapter.texts.set(at, text);
        await expect(stage.deafProcess().line().ask()).rejects.toMatchObject({ outcome: 'not-applied' });
        expect(adapter.texts.get(at)).toBe(text);
      },
    );
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY])(
    'A server time that is no time (%d) grants nothing, and leaves the holder its lock',
    async (nowMs) => {
      await stage.deafProcess().line().hold();
      const text = adapter.texts.get(at);
      adapter.nowMs = nowMs;
      await expect(stage.deafProcess().line().try()).rejects.toMatchObject({ outcome: 'not-applied' });
      expect(adapter.texts.get(at)).toBe(text);
    },
  );

  it('A grant to another process is found by its poll, and not published', async () => {
    const elsewhere = other();
    const process = await elsewhere.process();
    const holder = stage.deafProcess().line();
    await holder.hold();
    const waiter = await process.line().wait();
    expect((await holder.release()).claims).toEqual([]);
    expect(await waiter.hold()).toMatchObject({ isClaim: true });
    expect(process.messages).toEqual([]);
    await elsewhere.end();
  });

  it('A grant whose write lost to another is not published', async () => {
    const process = await stage.process();
    const holder = stage.deafProcess().line();
    const { fence } = await holder.hold();
    const waiter = await process.line().wait();
    let isFirst = true;
    adapter.before = async (operation) => {
      if (operation !== 'replace' || !isFirst) return;
      isFirst = false;
      await other().store.release(waiter.request, { tombstoneMs: longMs });
    };
    const released = stage.store.forceRelease(key, fence);
    await clock.advance(10);
    expect(await released).toBe(true);
    expect(await process.heard()).toEqual([]);
  });

  it('The adapter’s warnings are passed on, and an adapter without warnings works', async () => {
    const warnings = [
      async () => ({ code: 'LOCK_EVICTION', message: 'it may evict' }),
      async () => undefined,
      async () => Promise.reject(new Error('not allowed')),
    ];
    const heard: StoreMessage[] = [];
    for (const warning of warnings) {
      const store = new CasStore({ adapter: Object.assign(new MapCas(), { warning }) });
      const end = await store.subscribe('process', (message) => void heard.push(message));
      await clock.settle();
      await end();
    }
    expect(heard).toEqual([{ kind: 'warning', code: 'LOCK_EVICTION', message: 'it may evict' }]);
  });

  it.each([
    [undefined, 'Expected `adapter` to be a CasAdapter, got `undefined` (undefined)'],
    [{}, 'Expected `adapter` to be a CasAdapter'],
    [{ adapter: { read() {} } }, 'Expected `adapter` to be a CasAdapter'],
    [{ adapter: new MapCas(), prefix: 'a{b' }, 'Expected `prefix` to be'],
    [{ adapter: new MapCas(), deadlineMs: 1 }, 'Expected `deadlineMs` to be'],
    [{ adapter: new MapCas(), ttl: 1 }, 'got `ttl`'],
  ])('CasStore refuses the options %j', (options, message) => {
    const build = () => new CasStore(options as unknown as CasStoreOptions);
    expect(build).toThrow(LockConfigError);
    expect(build).toThrow(message);
  });
});
