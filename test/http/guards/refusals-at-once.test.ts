import { lock, runInTrace } from 'reenlock';
import type { Response } from 'supertest';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { gate } from '../../support/gate.ts';
import { describeStyles, type Framework, type GuardOptions } from '../../support/http/frameworks.ts';
import { ServerStage, type ServerStageOptions } from '../../support/http/server-stage.ts';

describeStyles('A refusal that needs no wait', (framework) => {
  afterEach(endHolders);

  it.each<[string, ServerStageOptions, string]>([
    // A lease for the holder, and one for who waits.
    ['the key', { maxWaitersPerKey: 1 }, '60'],
    ['the process', { maxWaiters: 1 }, '1'],
  ])(
    'A request gets a 503 at once while as many as allowed wait for %s, and the waiters are not disturbed',
    async (...row) => {
      const [, limits, seconds] = row;
      const { stage, end } = await held(framework, { waitMs: 60_000 }, { ...limits, clock: new ManualClock() });
      const waiter = stage.get('/k', 'waiter');
      await stage.until('waiting waiter k');
      // The clock stands still: nobody's wait comes to its end.
      const { status, headers, text } = await stage.get('/k', 'too-many');
      expect([status, headers['retry-after']]).toEqual([503, seconds]);
      expect(text).toContain('Too many requests');
      expect(await stage.waiters('k')).toEqual(['waiter']);
      await end();
      expect((await waiter).status).toBe(200);
      // There is room again.
      expect((await stage.get('/k', 'next')).status).toBe(200);
    },
  );

  it('When the Locks closes, all waiters and all later requests get a 503 with Retry-After', async () => {
    const { stage, end } = await held(framework, { waitMs: 60_000 }, { clock: new ManualClock() });
    const waiters = ['one', 'two'].map((trace) => stage.get('/k', trace));
    await stage.until('waiting one k');
    await stage.until('waiting two k');
    const closing = stage.locks.close();
    const answers = [...(await Promise.all(waiters)), await stage.get('/k', 'late')];
    expect(answers.map(statusAndRetry)).toEqual(Array(3).fill([503, '1']));
    expect(stage.count('in')).toBe(0);
    await end();
    await closing;
  });
});

describeStyles('Retry-After', (framework) => {
  afterEach(endHolders);

  it.each([
    [90_000, 0, '90'],
    [90_000, 30_500, '60'],
    [90_000, 89_999, '1'],
    [400, 0, '1'],
  ])(
    'Retry-After is the rest of a lease of %i ms after %i ms, in whole seconds: %s',
    async (leaseMs, passedMs, seconds) => {
      const clock = new ManualClock();
      const { stage, end } = await held(framework, {}, { clock }, leaseMs);
      clock.skip(passedMs);
      expect(statusAndRetry(await stage.get('/tries', 'second'))).toEqual([423, seconds]);
      await end();
    },
  );
});

/** The holders of tests that failed before they ended them. */
const holders = new Set<() => void>();

function endHolders(): void {
  for (const end of holders) end();
  holders.clear();
}

/** Routes below guards, while a job of another trace holds the key `k` until `end`. */
async function held(
  framework: Framework,
  guard: GuardOptions,
  options: ServerStageOptions,
  leaseMs = 30_000,
): Promise<{ stage: ServerStage; end: () => Promise<void> }> {
  const { lockOn } = framework;
  const [taken, over] = [gate(), gate()];
  const stage = await ServerStage.start(framework, options, (app, stage) =>
    app
      .route('/k', lockOn('k', guard), (call) => {
        stage.note('in');
        call.send('k');
      })
      .route('/tries', lockOn('k', { waitMs: 0 }), (call) => call.send('k')),
  );
  const job = runInTrace(
    async () => {
      await lock.acquire('k', { leaseMs, renew: false });
      taken.open();
      await over;
    },
    { locks: stage.locks, traceId: 'holder' },
  );
  await taken;
  holders.add(over.open);
  const end = async (): Promise<void> => {
    over.open();
    await job;
    await stage.until('released holder k');
  };
  return { stage, end };
}

function statusAndRetry({ status, headers }: Response): [number, string | undefined] {
  return [status, headers['retry-after']];
}
