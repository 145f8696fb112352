/**
 * Serves one request under a guard whose client leaves, while a job holds a lock and another one waits for it, says what is
 * pending then, closes its server and does nothing more: each of them has timers that are far from due.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { createLocks, currentTrace, lock, runInTrace } from '../../../../src/core/index.ts';
import { lockOn, traceContext } from '../../../../src/express/index.ts';

const locks = createLocks({ waitMs: 3_600_000, maxHoldMs: 3_600_000, abortGraceMs: 3_600_000 });

async function main(): Promise<void> {
  const pending: string[] = [];
  for (const event of ['granted', 'waiting'] as const) locks.on(event, ({ key }) => pending.push(`${event} ${key}`));

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

  const waits = new Promise((resolve) => locks.on('waiting', resolve));
  for (const _ of ['holder', 'waiter'])
    void runInTrace(() => lock.run('stock', () => new Promise(() => {})), { locks });
  await waits;
  process.stdout.write(pending.join(', '));
}

void main();
