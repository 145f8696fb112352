import { warnOnce } from '../base/process-state.ts';

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

/** Required by its literal name, so that bundlers find it. No old version hides its package.json. */
function rTracerVersion(): string | undefined {
  try {
    const { version } = require('cls-rtracer/package.json') as { version?: unknown };
    return typeof version === 'string' ? version : undefined;
  } catch {
    return undefined;
  }
}

function isBefore(version: readonly number[], other: readonly number[]): boolean {
  const at = version.findIndex((part, index) => part !== other[index]);
  return at >= 0 && (version[at] ?? 0) < (other[at] ?? 0);
}
