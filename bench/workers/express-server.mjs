import { once } from 'node:events';
import { openApp } from '../apps/index.mjs';
import { serve } from '../lib/serve.mjs';

await serve(async ({ app: name, port }) => {
  const { app, counts, close } = await openApp(name, { port });
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: () => `http://127.0.0.1:${server.address().port}`,
    /** The processor time that this process has used, in µs. */
    usedUs() {
      const { user, system } = process.cpuUsage();
      return user + system;
    },
    counts: () => counts(),
    async close() {
      server.closeAllConnections();
      server.close();
      await close();
    },
  };
});
