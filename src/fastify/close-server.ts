import type { FastifyInstance } from 'fastify';
import type { Locks } from '../core/index.ts';
import { type CloseServerOptions, closeServer as closeHttpServer } from '../http/response/close-server.ts';

/**
 * Shuts an application down together with its locks, in place of `app.close()`, which it calls. At once, it accepts no new
 * connections, refuses new and waiting acquires (503), and ends idle connections. The other connections end after their next
 * response is sent. Held locks stay held for up to `drainMs`; then they are lost and released. One second later, the remaining
 * connections are destroyed, and the application's `onClose` hooks run. Resolves when all is closed.
 *
 * Installs no signal handler. May be called again. Rejects with `LockConfigError` for bad arguments, and then has closed
 * nothing. HTTP/2 servers are not supported: end their sessions yourself, and call `locks.close`.
 */
export async function closeServer(
  app: Pick<FastifyInstance, 'server' | 'close'>,
  locks: Locks,
  options?: CloseServerOptions,
): Promise<void> {
  await closeHttpServer(app.server, locks, options);
  await app.close();
}
