import { once } from 'node:events';
import { createConnection, createServer } from 'node:net';
import { serve } from '../lib/serve.mjs';

const delayMs = 1;

/** Passes bytes on in both directions, each a timer of a millisecond later: one to two, as timers go. */
await serve(async ({ port }) => {
  const server = createServer((near) => {
    const far = createConnection(port, '127.0.0.1');
    for (const [from, to] of [
      [near, far],
      [far, near],
    ]) {
      from.setNoDelay();
      from.on('data', (bytes) => setTimeout(() => to.write(bytes), delayMs));
      from.on('end', () => setTimeout(() => to.end(), delayMs));
      from.on('error', () => to.destroy());
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: () => server.address().port,
    close: () => {
      server.close();
    },
  };
});
