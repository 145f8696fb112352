import { once } from 'node:events';
import { openApp } from '../apps/index.mjs';
import { serve } from '../lib/serve.mjs';

await serve(async ({ app: name, ports }) => {
  const { app, counts, close } = await openApp(name, ports);
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: () => `http://127.0.0.1:${server.address().port}`,
    counts: () => counts(),
    async close() {
      server.closeAllConnections();
      server.close();
      await close();
    },
  };
});
