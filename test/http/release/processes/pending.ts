/**
 * Serves one request under a guard whose client leaves, closes its server, holds a lock in a job, prints what it holds and
 * does nothing more. Each of the two has timers that are far from due. (A waiting acquire does keep a process alive.)
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { createLocks, currentTrace, lock, runInTrace } from '../../../../src/core/index.ts';
import { lockOn, traceContext } from '../../../../src/express/index.ts';

const locks = createLocks({ waitMs: 3_600_000, maxHoldMs: 3_600_000, abortGraceMs: 3_600_000 });

async function main(): Promise<void> {
  const pending: string[] = [];
  locks.on('granted', ({ key }) => pending.push(`granted ${key}`));

  const trace = traceContext({ locks });
  const guard = lockOn('order');
  const server = createServer();
  const left = new Promise<void>((resolve) => {
    server.on('request', (req, res) => {
      trace(req, res, () =>
        guard(req, res, () => {
          currentTrace()?.signal.addEventListener('abort', () => resolve());
          client.destroy();
        }),
      );
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await left;
  await new Promise((resolve) => server.close(resolve));

  const granted = new Promise((resolve) => locks.on('granted', resolve));
  void runInTrace(() => lock.run('stock', () => new Promise(() => {})), { locks });
  await granted;
  process.stdout.write(pending.join(', '));
}

void main();
