import { createLocks, isLockError, lock, runInTrace } from 'reenlock';

// A process in which nothing but the locks could keep it alive. It says what came of its waits, if it lives to see that.
const locks = createLocks({ drainMs: 100 });
// Holds are lost in two of the scenes: without a listener, a warning would say so.
locks.on('lost', () => {});
const codeOf = (error: unknown): string => (isLockError(error) ? error.code : String(error));
const say = (what: string): void => void process.stdout.write(`${what}\n`);

const scenes: Record<string, () => Promise<void>> = {
  async 'a wait with an end'() {
    const hold = await lock.acquire('order:42');
    const other = runInTrace(() => lock.acquire('order:42', { waitMs: 50 }), { locks, traceId: 'other' });
    say(await other.then(() => 'granted', codeOf));
    await hold.release();
  },
  async 'a wait without an end'() {
    // Nobody renews it, and nobody releases it: the waiter gets the key when the lease is over.
    await lock.acquire('order:42', { leaseMs: 200, renew: false });
    const endless = { waitMs: Number.POSITIVE_INFINITY };
    await runInTrace(() => lock.acquire('order:42', endless), { locks, traceId: 'other' });
    say('granted');
  },
  async 'the end of the locks'() {
    await lock.acquire('order:42');
    await locks.close();
    say('closed');
  },
  async 'a hold that is renewed'() {
    await lock.acquire('order:42', { leaseMs: 100 });
    say('held');
    // The job is over when its promise settles, which nothing does.
    await new Promise(() => {});
  },
};

const scene = scenes[process.argv[2] as string] as () => Promise<void>;
void runInTrace(scene, { locks });
