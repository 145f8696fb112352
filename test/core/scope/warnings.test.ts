import { LockLostError, lock } from '../../../src/core/index.ts';
import { coreTests } from '../../support/stores/set-up.ts';
import { recordWarnings } from '../../support/warnings.ts';

const setUp = coreTests();
const warnings = recordWarnings();

describe('A lock that was lost before the end of its job', () => {
  /** A job takes a lock, loses it and ends. */
  async function loseOne(setup: ReturnType<typeof setUp>, use: (hold: { signal: AbortSignal }) => unknown = () => {}) {
    const job = setup.job();
    use(await job.in(() => lock.acquire('key', { leaseMs: 3_000, renew: false })));
    await setup.clock.advance(3_000);
    await job.end();
  }

  it('The loss is warned of once if nothing in the application could hear of it', async () => {
    const setup = setUp();
    await loseOne(setup);
    await loseOne(setup);
    expect(warnings()).toEqual([
      {
        code: 'LOCK_LOST',
        detail: 'See docs/reference/errors.md, "LOCK_LOST".',
        message: expect.stringContaining("listen with `locks.on('lost', …)`"),
      },
    ]);
  });

  it('A listener of `lost` hears of it: no warning comes', async () => {
    const setup = setUp();
    const lost = setup.events('lost');
    await loseOne(setup);
    expect(lost).toHaveLength(1);
    expect(warnings()).toEqual([]);
  });

  it('Code that asked for the signal hears of it: no warning comes', async () => {
    await loseOne(setUp(), ({ signal }) => signal);
    expect(warnings()).toEqual([]);
  });

  it('A job that releases the lock itself hears of it by the rejection: no warning comes', async () => {
    const { job, clock } = setUp();
    const { in: inJob, end } = job();
    const hold = await inJob(() => lock.acquire('key', { leaseMs: 3_000, renew: false }));
    await clock.advance(3_000);
    // Somebody else has it since.
    await job().in(() => lock.acquire('key'));
    await expect(hold.release()).rejects.toThrow(LockLostError);
    await end();
    expect(warnings()).toEqual([]);
  });
});
