import { once } from 'node:events';
import type { Server } from 'node:http';
import type { Locks } from 'reenlock';

/**
 * Lets the requests that hold a lock finish, answers those that wait for one with 503, and takes no new ones. Whoever
 * still holds a lock after `drainMs` loses it.
 */
export async function shutDown(server: Server, locks: Locks, drainMs: number): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  // A connection that is idle from now on has no reason to stay open.
  server.keepAliveTimeout = 1;
  await locks.close({ drainMs });
  await closed;
}
