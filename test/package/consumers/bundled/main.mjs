import assert from 'node:assert/strict';
import { once } from 'node:events';
import { metrics } from '@opentelemetry/api';
import express from 'express';
import { register } from 'prom-client';
import { createLocks } from 'reenlock';
import { lockBoard, lockOn, traceContext } from 'reenlock/express';
import { instrumentLocks } from 'reenlock/otel';
import { collectLockMetrics } from 'reenlock/prometheus';

// `await` would not be possible here: a bundle may be CommonJS.
main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});

async function main() {
  const locks = createLocks();
  const holds = [];
  const meter = metrics.getMeter('test');
  const stopCollecting = collectLockMetrics(locks);
  const stopInstrumenting = instrumentLocks(locks, {
    meterProvider: {
      getMeter: () => Object.assign(Object.create(meter), { createHistogram: () => ({ record: () => holds.push(1) }) }),
    },
  });

  const app = express();
  app.use(traceContext({ locks }));
  app.use('/locks', lockBoard({ locks, authorize: () => ({ name: 'an operator' }) }));
  app.post(
    '/orders/:id',
    lockOn((req) => req.params.id),
    (req, res) => {
      res.json({ fence: req.lock.fence });
    },
  );
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const get = async (path, method = 'GET') => {
    const response = await fetch(`http://127.0.0.1:${server.address().port}${path}`, { method });
    return [response.status, await response.text()];
  };

  const [status, body] = await get('/orders/42', 'POST');
  assert.equal(status, 200, body);
  const [pageStatus, page] = await get('/locks/');
  assert.equal(pageStatus, 200);
  const files = [...page.matchAll(/(?:src|href)="(?:\.\/)?([^"/]+\.(?:mjs|css))"/g)].map(([, file]) => file);
  assert.ok(files.length > 1, page);
  for (const file of files) {
    const [fileStatus, text] = await get(`/locks/${file}`);
    assert.equal(fileStatus, 200, file);
    assert.ok(text.length > 100, file);
  }
  assert.match(await register.metrics(), /reenlock_acquire_duration_seconds_count\{[^}]*outcome="granted"[^}]*\} 1/);
  assert.ok(holds.length > 0, 'no measurement reached OpenTelemetry');

  stopCollecting();
  stopInstrumenting();
  server.close();
  server.closeAllConnections();
  await locks.close();
  console.log('ok');
}
