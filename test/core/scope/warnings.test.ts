import { getLock, type Hold, LockLostError, lock } from '../../../src/core/index.ts';
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

  it('The loss is warned about once, with its reason, if nothing in the application could notice it', async () => {
    const setup = setUp();
    await loseOne(setup);
    await loseOne(setup);
    expect(warnings()).toEqual([
      {
        code: 'LOCK_LOST',
        detail: 'See node_modules/reenlock/docs/reference/errors.md#lock_lost',
        message: expect.stringMatching(
          /^The lock was lost: its lease expired before it could be renewed\. No code noticed it: listen with `locks\.on\('lost', …\)`/,
        ),
      },
    ]);
  });

  it('A listener of `lost` notices the loss: there is no warning', async () => {
    const setup = setUp();
    const lost = setup.events('lost');
    await loseOne(setup);
    expect(lost).toHaveLength(1);
    expect(warnings()).toEqual([]);
  });

  it('Code that asked for the signal notices the loss: there is no warning', async () => {
    await loseOne(setUp(), ({ signal }) => signal);
    expect(warnings()).toEqual([]);
  });

  it('A job that releases the lock itself notices the loss by the rejection: there is no warning', async () => {
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

  const lost = { code: 'ERR_LOCK_LOST' };
  const ways: readonly [how: string, use: (hold: Hold) => unknown][] = [
    ['calls `assertHeld`', (hold) => expect(() => hold.assertHeld()).toThrow(LockLostError)],
    ['calls `isHeld`', (hold) => expect(hold.isHeld()).toBe(false)],
    ['asks whether the key is held', () => expect(getLock('key').isHeld()).toBe(false)],
    ['extends the lease', (hold) => expect(hold.extend(3_000)).rejects.toMatchObject(lost)],
    ['acquires the key again', () => expect(lock.acquire('key')).rejects.toMatchObject(lost)],
  ];

  it.each(ways)('Code that %s after the loss notices it: there is no warning', async (_, use) => {
    const { job, clock } = setUp();
    const { in: inJob, end } = job();
    const hold = await inJob(() => lock.acquire('key', { leaseMs: 3_000, renew: false }));
    await clock.advance(3_000);
    await inJob(async () => use(hold));
    await end();
    expect(warnings()).toEqual([]);
  });

  it('Code that runs a routine within the lock notices the loss by the rejection: there is no warning', async () => {
    const { job, clock } = setUp();
    const { in: inJob, end } = job();
    await inJob(() => lock.acquire('key', { leaseMs: 3_000, renew: false }));
    const run = inJob(() => lock.run('key', () => clock.advance(3_000), { leaseMs: 3_000, renew: false }));
    await expect(run).rejects.toMatchObject(lost);
    await end();
    expect(warnings()).toEqual([]);
  });

  it('Code that finds too little of the lease left notices no loss: there is a warning', async () => {
    const { job, clock } = setUp();
    const { in: inJob, end } = job();
    const hold = await inJob(() => lock.acquire('key', { leaseMs: 3_000, renew: false }));
    expect(() => hold.assertHeld(60_000)).toThrow(LockLostError);
    expect(hold.isHeld()).toBe(true);
    await clock.advance(3_000);
    await end();
    expect(warnings()).toMatchObject([{ code: 'LOCK_LOST' }]);
  });
});
