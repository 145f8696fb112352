import { currentTrace, type LockEvents, lock, runInTrace } from 'reenlock';
import { gate } from '../../support/gate.ts';
import { bare } from '../../support/http/bare-app.ts';
import type { ServerStage } from '../../support/http/server-stage.ts';
import { called, describeServices, type StartService } from '../../support/http/services.ts';
import { recordWarnings } from '../../support/warnings.ts';

const warnings = recordWarnings();
const { lockOn } = bare;
const byHand = (): Record<string, string> => ({ 'X-Trace-Id': String(currentTrace()?.traceId) });

interface Reply {
  readonly fence: number;
  readonly below: number | null;
}

/** A service that forwards its trace id by hand within a guard, and the one that it calls. */
async function pairOf(
  start: StartService,
  bareTraceId: 'owner' | 'branch',
): Promise<{ caller: ServerStage; entered: LockEvents['entered'][] }> {
  const entered: LockEvents['entered'][] = [];
  const service = await start({ bareTraceId }, (app, { locks }) => {
    locks.on('entered', (event) => void entered.push(event));
    app.route('/x', async (call) => call.send([(await lock.tryAcquire('k'))?.fence ?? null]));
  });
  const caller = await start({ bareTraceId }, (app) =>
    app.route('/x', lockOn('k'), async (call) => {
      const [below] = await called<[number | null]>(service, '/x', byHand());
      call.send({ fence: call.lock?.fence, below });
    }),
  );
  return { caller, entered };
}

/** A service whose requests note that they are there, and go on when the test says so. */
async function slowService(start: StartService, bareTraceId: 'owner' | 'branch', mode: 'read' | 'write' = 'write') {
  const go = gate();
  const entered: boolean[] = [];
  const service = await start({ bareTraceId }, (app, stage) => {
    stage.locks.on('waiting', () => stage.note('waits'));
    stage.locks.on('entered', ({ isOverlap }) => void entered.push(isOverlap));
    app.route('/x', lockOn('k', { mode }), async (call) => {
      stage.note('in');
      await go;
      call.send({});
    });
    app.route('/w', async (call) => {
      await lock.acquire('k');
      call.send({});
    });
  });
  return { go, service, entered, call: () => called(service, '/x', { 'X-Trace-Id': 'labelled' }) };
}

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown }).code;
}

/** Runs a step while a job with a trace of its own holds the key. */
async function asStranger({ locks }: ServerStage, step: () => Promise<void>): Promise<void> {
  await runInTrace(() => lock.run('k', step), { locks });
}

describeServices('A trace id that is forwarded by hand, without a branch', (start) => {
  it.each([
    ['that its caller made', {}],
    ['that its caller was sent', { 'X-Trace-Id': 'labelled' }],
  ])('A called service enters the guard of its caller under the one trace id %s', async (_, headers) => {
    const { caller, entered } = await pairOf(start, 'owner');
    const { fence, below } = await called<Reply>(caller, '/x', headers);
    expect(below).toBe(fence);
    expect(entered).toHaveLength(1);
  });

  it("With `bareTraceId: 'branch'`, a called service does not enter what a request with the same label holds", async () => {
    const { caller, entered } = await pairOf(start, 'branch');
    expect(await called<Reply>(caller, '/x', { 'X-Trace-Id': 'labelled' })).toMatchObject({ below: null });
    expect(entered).toEqual([]);
    expect(warnings()).toEqual([]);
  });

  it("With `bareTraceId: 'branch'`, a called service is nested in the request that made the trace id", async () => {
    const { caller, entered } = await pairOf(start, 'branch');
    const { fence, below } = await called<Reply>(caller, '/x');
    expect(below).toBe(fence);
    expect(entered.map(({ isOverlap }) => isOverlap)).toEqual([false]);
    expect(warnings()).toEqual([]);
  });

  it("Requests with one label wait for each other with `bareTraceId: 'branch'`", async () => {
    const { go, service, entered, call } = await slowService(start, 'branch');
    const first = call();
    await service.until('in');
    const second = call();
    await service.until('waits');
    expect(service.count('in')).toBe(1);
    go.open();
    await Promise.all([first, second]);
    expect(entered).toEqual([]);
    expect(warnings()).toEqual([]);
  });
});

describeServices('Two holds under one bare trace id', (start, { hasReaders }) => {
  it('Requests that hold a key at once under one trace id are each said to overlap, and warned of once', async () => {
    const { go, service, entered, call } = await slowService(start, 'owner');
    const first = call();
    await service.until('in');
    const others = [call(), call()];
    await service.until('in', 3);
    go.open();
    await Promise.all([first, ...others]);
    expect(entered).toEqual([true, true]);
    expect(warnings().map(({ code }) => code)).toEqual(['LOCK_OVERLAP']);
  });

  if (hasReaders !== false) {
    it('Readers that hold a key at once under one trace id are not said to overlap, but a writer that joins them', async () => {
      const { go, service, entered, call } = await slowService(start, 'owner', 'read');
      const readers = [call(), call()];
      await service.until('in', 2);
      expect(warnings()).toEqual([]);
      await called(service, '/w', { 'X-Trace-Id': 'labelled' });
      go.open();
      await Promise.all(readers);
      expect(entered).toEqual([false, true]);
      expect(warnings().map(({ code }) => code)).toEqual(['LOCK_OVERLAP']);
    });
  }

  it('Requests that wait for a stranger, and are granted together by its release, are said to overlap', async () => {
    const { go, service, entered, call } = await slowService(start, 'owner');
    let calls: readonly Promise<unknown>[] = [];
    await asStranger(service, async () => {
      calls = [call(), call()];
      await service.until('waits', 2);
    });
    await service.until('in', 2);
    go.open();
    await Promise.all(calls);
    // A store without a queue of its own grants one after the other.
    expect(new Set(entered)).toEqual(new Set([true]));
    expect(warnings().map(({ code }) => code)).toEqual(['LOCK_OVERLAP']);
  });

  it('Two acquires of one request that are granted together by a stranger’s release are not said to overlap', async () => {
    const entered: boolean[] = [];
    const service = await start({ bareTraceId: 'owner' }, (app, stage) => {
      stage.locks.on('waiting', () => stage.note('waits'));
      stage.locks.on('entered', ({ isOverlap }) => void entered.push(isOverlap));
      app.route('/x', async (call) => {
        await Promise.all([lock.acquire('k'), lock.acquire('k')]);
        call.send({});
      });
    });
    let reply: Promise<unknown> | undefined;
    await asStranger(service, async () => {
      reply = called(service, '/x', { 'X-Trace-Id': 'labelled' });
      await service.until('waits', 2);
    });
    await reply;
    expect(new Set(entered)).toEqual(new Set([false]));
    expect(warnings()).toEqual([]);
  });

  it.each([
    ['is known to be nested in the request that made the id', {}, false],
    ['looks like a request at the same time if its caller had the bare id, too', { 'X-Trace-Id': 'labelled' }, true],
  ])('A call by a bare trace id %s', async (_, headers, isOverlap) => {
    const { caller, entered } = await pairOf(start, 'owner');
    await called(caller, '/x', headers);
    expect(entered.map((event) => event.isOverlap)).toEqual([isOverlap]);
    expect(warnings().map(({ code }) => code)).toEqual(isOverlap ? ['LOCK_OVERLAP'] : []);
  });

  it('The request that made the id does not enter what a service has locked under the bare id', async () => {
    const go = gate();
    const service = await start({}, (app, stage) => {
      app.route('/x', lockOn('k'), async (call) => {
        stage.note('in');
        await go;
        call.send({});
      });
    });
    const caller = await start({}, (app) =>
      app.route('/x', async (call) => {
        const reply = called(service, '/x', byHand());
        await service.until('in');
        const own = [await lock.tryAcquire('k'), await lock.run('k', () => 'entered', { waitMs: 0 }).catch(codeOf)];
        go.open();
        await reply;
        call.send({ own });
      }),
    );
    expect(await called(caller, '/x')).toEqual({ own: [null, 'ERR_LOCK_TIMEOUT'] });
  });
});
