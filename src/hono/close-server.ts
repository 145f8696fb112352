import type { Server } from 'node:http';
import type { Http2SecureServer, Http2Server } from 'node:http2';
import type { Locks } from '../core/index.ts';
import { type CloseServerOptions, closeServer as closeHttpServer } from '../http/response/close-server.ts';

/**
 * Shuts a server down together with its locks. `server` is what `serve` of `@hono/node-server` returned. At once, it accepts no new
 * connections, refuses new and waiting acquires (503), and ends idle connections. Other connections end after their next response.
 * Held locks stay held for up to `drainMs` milliseconds (default 10 000); then they are lost and released. One second later, the
 * remaining connections are destroyed. Resolves when the server and the locks are closed.
 *
 * Installs no signal handler. You may call it again. Rejects with `LockConfigError` for bad arguments, and then has closed nothing.
 * HTTP/2 servers are refused, although their type is allowed, as `serve` names all three types: end their sessions yourself, and call
 * `locks.close`.
 *
 * @example
 * ```ts
 * import { serve } from '@hono/node-server';
 * import { Hono } from 'hono';
 * import { configureLocks } from 'reenlock';
 * import { closeServer, traceContext } from 'reenlock/hono';
 *
 * const locks = configureLocks();
 * const app = new Hono().use(traceContext());
 * const server = serve(app);
 * process.once('SIGTERM', () => closeServer(server, locks, { drainMs: 5_000 }));
 * ```
 */
export async function closeServer(
  server: Server | Http2Server | Http2SecureServer,
  locks: Locks,
  options?: CloseServerOptions,
): Promise<void> {
  await closeHttpServer(server as Server, locks, options);
}
