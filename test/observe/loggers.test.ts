import { Writable } from 'node:stream';
import { inspect } from 'node:util';
import pino from 'pino';
import { isLockError, type LockError, lock, runInTrace } from 'reenlock';
import { createTestLocks } from 'reenlock/testing';
import { createLogger, format, transports } from 'winston';

/** What was written, parsed. */
function sink(): { stream: Writable; lines: () => Record<string, unknown>[] } {
  const chunks: string[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(String(chunk));
      done();
    },
  });
  const lines = () =>
    chunks
      .join('')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { stream, lines };
}

/** The error of an acquire that waited for a key in vain. */
async function refusal(): Promise<LockError> {
  const locks = createTestLocks();
  await locks.holdAs('secret-owner', 'order:42', { category: 'orders' });
  const acquire = () => lock.acquire('order:42', { category: 'orders', waitMs: 1 });
  const error: unknown = await runInTrace(acquire, { locks }).catch((reason: unknown) => reason);
  await locks.end();
  if (!isLockError(error)) throw new Error(`Expected a lock error, got ${inspect(error)}`);
  return error;
}

const shown = { code: 'ERR_LOCK_TIMEOUT', key: 'order:42', category: 'orders' };

describe('Loggers', () => {
  it('pino shows the code, key and category of an error, the holder of the key, and no owner', async () => {
    const { stream, lines } = sink();
    const err = await refusal();
    pino(stream).error({ err }, 'refused');
    const holder = { heldMs: expect.any(Number), waiters: 1 };
    expect(lines()).toMatchObject([{ msg: 'refused', err: { type: 'LockTimeoutError', ...shown, holder } }]);
    expect(JSON.stringify(lines())).not.toContain('secret');
  });

  it('winston shows the code, key and category of an error that is its second argument, and no owner', async () => {
    const { stream, lines } = sink();
    const log = createLogger({
      format: format.combine(format.errors({ stack: true }), format.json()),
      transports: [new transports.Stream({ stream })],
    });
    log.error('refused', await refusal());
    expect(lines()).toMatchObject([{ level: 'error', ...shown }]);
    expect(JSON.stringify(lines())).not.toContain('secret');
  });
});
