import type { Server } from 'node:http';
import { within } from '../base/clock.ts';
import { LockConfigError } from '../model/errors.ts';
import { checkOptions, describe, milliseconds, objectWith } from '../model/validate.ts';
import { type Locks, runtimeOf } from '../runtime/locks.ts';
import { endIdleConnections, sparingAnswers } from './idle-connections.ts';

/** What `closeServer` takes. */
export interface CloseServerOptions {
  /** How long to wait for what is held and for what is answered, in milliseconds. Default: that of the `Locks`. */
  readonly drainMs?: number | undefined;
}

/** How long who lost a lock at the end of the drain has for an answer; and a connection, for one more request. */
const lastMs = 1_000;

const rules = { drainMs: milliseconds(0) };
const closable = objectWith('a server of `node:http` or `node:https`', 'closeIdleConnections', 'closeAllConnections');

/**
 * Shuts a server down together with its locks. At once it takes no new connections, refuses new acquires and who waits
 * (503), and ends idle connections; the others end with their next answer, and that is sent. What is held may go on for
 * `drainMs`, then it is declared lost and given back. What is still connected a second later is cut off. Resolves when the
 * server and the locks are closed. A connection that was taken over (a WebSocket) is the application's to end, and not
 * waited for longer.
 *
 * Installs no signal handler, and closes no client of the application's. Calling it again is harmless. Rejects with
 * `LockConfigError` for bad arguments, and has closed nothing then. HTTP/2 servers are not taken: end their sessions
 * yourself, and call `locks.close`.
 */
export async function closeServer(server: Server, locks: Locks, options?: CloseServerOptions): Promise<void> {
  if (!closable.accepts(server)) {
    throw new LockConfigError(`Expected \`server\` to be ${closable.expected}, got ${describe(server)}`);
  }
  const { clock, settings } = runtimeOf(locks);
  const { drainMs = settings.drainMs } = checkOptions(options, rules, 'closeServer');
  // Also called back where it does not listen: when its last connection is over.
  const closed = new Promise<void>((resolve) => {
    sparingAnswers(server, () => server.close(() => resolve()));
  });
  // What has no scope of a request keeps its connection alive; 0 would be for ever.
  server.keepAliveTimeout = Math.min(server.keepAliveTimeout || lastMs, lastMs);
  const over = within(clock, drainMs + lastMs, closed);
  await locks.close({ drainMs });
  // Those of the answers that were the last to need a lock.
  endIdleConnections(server);
  await over;
  server.closeAllConnections();
}
