import type { Server } from 'node:http';
import { within } from '../../core/base/clock.ts';
import { LockConfigError } from '../../core/model/errors/mistakes.ts';
import { checkOptions, describe, millisecondsOrZero, objectWith } from '../../core/model/validate.ts';
import { type Locks, runtimeOf } from '../../core/runtime/locks.ts';
import { endIdleConnections, withBusySocketsProtected } from './idle-connections.ts';

/** The options of `closeServer`. */
export interface CloseServerOptions {
  /** How long to wait for holds and responses, in milliseconds. Default: `drainMs` of the `Locks`, 10 000. */
  readonly drainMs?: number | undefined;
}

/** After the drain: the time for a handler that lost its lock to respond, and for a connection to send one more request. */
const lastMs = 1_000;

const rules = { drainMs: millisecondsOrZero };
const closable = objectWith('a server of `node:http` or `node:https`', 'closeIdleConnections', 'closeAllConnections');

/**
 * Shuts a server down together with its locks. At once, it accepts no new connections, refuses new and waiting acquires (503), and ends
 * idle connections. Other connections end after their next response. Held locks stay held for up to `drainMs` milliseconds
 * (default 10 000); then they are lost and released. One second later, the remaining connections are destroyed. Resolves when the
 * server and the locks are closed. It does not wait longer for connections that were taken over (WebSockets): end those yourself.
 *
 * Installs no signal handler, and closes none of the application's clients. You may call it again. Rejects with `LockConfigError`
 * for bad arguments, and then has closed nothing. HTTP/2 servers are not supported: end their sessions yourself, and call
 * `locks.close`.
 *
 * @example
 * ```ts
 * import { createServer } from 'node:http';
 * import { configureLocks } from 'reenlock';
 * import { closeServer } from 'reenlock/node';
 *
 * const locks = configureLocks();
 * const server = createServer((_req, res) => res.end()).listen(3000);
 * process.once('SIGTERM', () => closeServer(server, locks, { drainMs: 5_000 }));
 * ```
 */
export async function closeServer(server: Server, locks: Locks, options?: CloseServerOptions): Promise<void> {
  if (!closable.accepts(server)) {
    throw new LockConfigError(`Expected \`server\` to be ${closable.expected}, got ${describe(server)}`);
  }
  const { clock, settings } = runtimeOf(locks);
  const { drainMs = settings.drainMs } = checkOptions(options, rules, 'closeServer');
  // Also called back if the server does not listen: when its last connection has closed.
  const closed = new Promise<void>((resolve) => {
    withBusySocketsProtected(server, () => server.close(() => resolve()));
  });
  // Responses without a request scope still keep their connections alive; 0 would mean forever.
  server.keepAliveTimeout = Math.min(server.keepAliveTimeout || lastMs, lastMs);
  const ended = within(clock, drainMs + lastMs, closed);
  await locks.close({ drainMs });
  // Connections of responses that were waiting for the last locks.
  endIdleConnections(server);
  await ended;
  server.closeAllConnections();
}
