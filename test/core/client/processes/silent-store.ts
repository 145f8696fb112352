/**
 * Calls a store that does not reply, or fails. Nothing but the package's own timers keeps the process alive: a store in memory has
 * no connection, as a client has none whose server is gone. Prints each outcome.
 */
import { isLockError, lock, runInTrace } from '../../../../src/core/index.ts';
import { createTestLocks, type StoreFault, type StoreOperation } from '../../../../src/testing/index.ts';

async function outcome(operation: StoreOperation, fault: StoreFault, work: () => Promise<unknown>): Promise<void> {
  const locks = createTestLocks({ storeTimeoutMs: 100 });
  locks.failNext(operation, fault);
  const result = await runInTrace(work, { locks }).catch((error) => (isLockError(error) ? error.code : error));
  process.stdout.write(`${operation} ${fault instanceof Error ? fault.message : fault}: ${result}\n`);
}

async function main(): Promise<void> {
  const run = () => lock.run('order', async () => 'done');
  await outcome('acquire', 'lost-call', run);
  await outcome('release', 'lost-reply', run);
  await outcome('release', new Error('down'), run);
  await outcome('renew', 'lost-call', () => lock.run('order', (hold) => hold.extend(60_000)));
  await outcome('transfer', 'late', () => lock.run('order', (hold) => hold.detach({ leaseMs: 60_000 })));
}

void main();
