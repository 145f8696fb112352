import type { ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import { warnOnce } from '../base/process-state.ts';
import type { ScopedHold } from '../scope/hold.ts';

/**
 * Warns once if cls-rtracer is older than the peer range: such versions remove the wrong listener from a request or
 * response. Called when `traceContext` is built. Does nothing if the version is unknown.
 */
export function checkRTracer(): void {
  const version = rTracerVersion();
  const [, major, minor, patch] = /^(\d+)\.(\d+)\.(\d+)/.exec(version ?? '') ?? [];
  if (major === undefined) return;
  if (isBefore([Number(major), Number(minor), Number(patch)], oldestRTracer)) {
    const oldest = oldestRTracer.join('.');
    warnOnce(
      'LOCK_RTRACER_OLD',
      `Expected cls-rtracer ${oldest} or newer, got ${version}, which removes wrong listeners from requests: update it`,
    );
  }
}

const oldestRTracer = [2, 6, 4];

/**
 * Warns once if an event stream was sent under a lock: waiters wait for as long as the client listens. Called when a guarded
 * response ends or is closed. Only then is its type certain, and whether the handler released the hold before. It costs a
 * request one look at a header.
 */
export function warnOfEventStream(res: ServerResponse, holds: readonly ScopedHold[]): void {
  // The client may have left before the response began, and before the handler released the hold.
  if (!res.headersSent) return;
  const type = res.getHeader('content-type');
  if (typeof type !== 'string' || !/^text\/event-stream\b/i.test(type)) return;
  if (!holds.some((hold) => hold.isHeld() || hold.grant.lostError !== undefined)) return;
  warnOnce(
    'LOCK_EVENT_STREAM',
    'A guarded route sent an event stream and held its lock until the stream was over: release the lock before, with `hold.release()`, or lock in the handler with `lock.run`',
  );
}

/** No old version hides its package.json. A bundle has none. */
function rTracerVersion(): string | undefined {
  try {
    const { version } = createRequire(__filename)('cls-rtracer/package.json') as { version?: unknown };
    return typeof version === 'string' ? version : undefined;
  } catch {
    return undefined;
  }
}

function isBefore(version: readonly number[], other: readonly number[]): boolean {
  const at = version.findIndex((part, index) => part !== other[index]);
  return at >= 0 && (version[at] ?? 0) < (other[at] ?? 0);
}
