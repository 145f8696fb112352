import { systemClock } from '../../../core/base/clock.ts';
import { type Link, LinkWatch } from '../../../core/base/link.ts';

/** How long a command waits for a connection. Its caller may be less patient. */
const patienceMs = 2_000;

/** How long to wait before a connection for subscriptions is opened again. */
export function retryMs(attempt: number): number {
  return Math.min(attempt * 50, 2_000);
}

/** Watches the link of a client, for all stores on it. */
export function watchConnection(link: Link): LinkWatch {
  return new LinkWatch(link, systemClock, patienceMs);
}
