import type { ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import { warnOnce } from '../base/process-state.ts';
import { LockConfigError } from '../model/errors.ts';
import { describe } from '../model/validate.ts';
import type { ScopedHold } from '../scope/hold.ts';

/**
 * Warns once of a cls-rtracer older than the peer range says. Those take the wrong listener off a request or response
 * when one is removed. Asked when `traceContext` is built; says nothing where the version can't be told.
 */
export function checkRTracer(): void {
  const version = rTracerVersion();
  const [, major, minor, patch] = /^(\d+)\.(\d+)\.(\d+)/.exec(version ?? '') ?? [];
  if (major === undefined) return;
  if (isBefore([Number(major), Number(minor), Number(patch)], oldestRTracer)) {
    const oldest = oldestRTracer.join('.');
    warnOnce(
      'LOCK_RTRACER_OLD',
      `cls-rtracer ${version} takes wrong listeners off requests: install ${oldest} or newer`,
    );
  }
}

const oldestRTracer = [2, 6, 4];

/**
 * Throws `LockConfigError` for a middleware that something else than its framework calls. The other framework does: both have
 * the same names, and are easily taken for each other; `next` is undefined then, or a response. What is for WebSockets does,
 * too: it gives none, or a request in the place of the response.
 */
export function checkCall(own: 'express' | 'koa', res: unknown, next: unknown): void {
  const expected = `Expected a middleware of \`reenlock/${own}\` to be called with`;
  if (typeof next !== 'function') {
    const [called, other] = own === 'express' ? ['(req, res, next)', 'koa'] : ['(ctx, next)', 'express'];
    throw new LockConfigError(
      `${expected} \`${called}\`, got ${describe(next)} as \`next\`: take it from \`reenlock/${other}\` there`,
    );
  }
  if (typeof (res as Partial<ServerResponse> | null | undefined)?.setHeader === 'function') return;
  const name = own === 'express' ? 'res' : 'ctx.res';
  throw new LockConfigError(
    `${expected} a response of \`node:http\`, got ${describe(res)} as \`${name}\`: for a WebSocket, lock in \`runInTrace\``,
  );
}

/**
 * Warns once of an event stream that was sent under a lock: others wait for it as long as the client listens. Asked when
 * a guarded response ends or is closed: its type is certain then, whatever the client accepts, and so is whether the
 * handler gave the hold back before. It costs a request one look at a header.
 */
export function warnOfEventStream(res: ServerResponse, holds: readonly ScopedHold[]): void {
  // Its client may have left before it began, and before its handler gave the hold back.
  if (!res.headersSent) return;
  const type = res.getHeader('content-type');
  if (typeof type !== 'string' || !/^text\/event-stream\b/i.test(type)) return;
  if (!holds.some((hold) => hold.isHeld() || hold.grant.lostError !== undefined)) return;
  warnOnce(
    'LOCK_EVENT_STREAM',
    'A guarded route answered with an event stream: its lock was held until the stream was over. Release it before, with `hold.release()`, or lock in the handler with `lock.run`',
  );
}

/** None of the old versions hides its package.json; a bundle has none to be found. */
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
