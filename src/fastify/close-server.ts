import type { FastifyInstance } from 'fastify';
import { LockConfigError, type Locks } from '../core/index.ts';
import { type CloseServerOptions, closeServer as closeHttpServer } from '../http/response/close-server.ts';

/**
 * Shuts an application down together with its locks. Call it instead of `app.close()`, which it calls. At once, it accepts no new
 * connections, refuses new and waiting acquires (503), and ends idle connections. Other connections end after their next response.
 * Held locks stay held for up to `drainMs` milliseconds (default 10 000); then they are lost and released. One second later, the
 * remaining connections are destroyed, and the application's `onClose` hooks run. Resolves when all is closed.
 *
 * Installs no signal handler. You may call it again. Rejects with `LockConfigError` for bad arguments, and then has closed nothing.
 * HTTP/2 servers are not supported: end their sessions yourself, and call `locks.close`.
 *
 * @example
 * ```ts
 * import fastify from 'fastify';
 * import { configureLocks } from 'reenlock';
 * import { closeServer, traceContext } from 'reenlock/fastify';
 *
 * const locks = configureLocks();
 * const app = fastify();
 * await app.register(traceContext());
 * await app.listen({ port: 3000 });
 * process.once('SIGTERM', () => closeServer(app, locks, { drainMs: 5_000 }));
 * ```
 */
export async function closeServer(
  app: Pick<FastifyInstance, 'server' | 'close'>,
  locks: Locks,
  options?: CloseServerOptions,
): Promise<void> {
  if (typeof app?.server?.on !== 'function') {
    throw new LockConfigError(
      'Expected `app` to be an application of Fastify, got none: pass it instead of its `server`',
    );
  }
  await closeHttpServer(app.server, locks, options);
  await app.close();
}
