import { CallSite } from '../base/call-site.ts';
import { warnOnce } from '../base/process-state.ts';
import type { Grant } from '../lease/grant.ts';
import type { Events } from '../model/events.ts';
import { onRoute } from '../model/key.ts';

/** The work of a guarded request goes on after its guard has released the lock. */
export function warnOfLateWork(route: string | undefined): void {
  warnOnce(
    'LOCK_LATE_WORK',
    `Expected the work of a guarded request to end before its response, got calls after its guard had released the lock${onRoute(route)}: await the work before you respond, or pass it to \`hold.waitUntil\``,
    route,
    () => new CallSite(warnOfLateWork),
  );
}

/** Two requests or jobs hold a key under one bare trace id, and neither is known to be nested in the other. */
export function warnOfOverlap(): void {
  warnOnce(
    'LOCK_OVERLAP',
    "Expected each request and job of a trace to send its own branch, got two that hold a key at the same time under one bare trace id: send all of `traceHeaders()` to called services, or set `bareTraceId: 'branch'`",
  );
}

/** This many keys, acquired in a loop, deserve a hint. */
const manyKeys = 100;

/** A request or job that holds very many keys acquires another one alone. Call it within that call. */
export function warnOfManyKeys(held: number): void {
  if (held !== manyKeys) return;
  warnOnce(
    'LOCK_MANY_KEYS',
    `Expected a request or job that needs many keys to acquire them together, got one that holds ${manyKeys} and acquires another one alone: \`lock.runAll\` and \`lock.acquireAll\` make fewer calls, and can't deadlock`,
    undefined,
    () => new CallSite(),
  );
}

/** Warns about a lost lock that is released at the end of the work: nobody awaits that release and sees the loss. */
export function warnIfUnnoticed(grant: Grant, events: Events, route: string | undefined): void {
  const { lostError } = grant;
  if (lostError === undefined || grant.hasLossListener || events.has('lost')) return;
  warnOnce(
    'LOCK_LOST',
    `${lostError.message}${onRoute(route)}. No code noticed it: listen with \`locks.on('lost', …)\`, or use the hold's \`signal\`, and compare its \`fence\` where the work is written`,
    route,
  );
}
