import { systemClock } from '../../../base/clock.ts';
import { type Link, LinkWatch } from '../../../base/link.ts';

/** How long a command waits for a connection. Its caller may be less patient. */
const patienceMs = 2_000;

/** Watches the link of a client, for all stores on it. */
export function watchConnection(link: Link): LinkWatch {
  return new LinkWatch(link, systemClock, patienceMs);
}
