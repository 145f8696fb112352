import { warnOnce } from '../core/base/process-state.ts';
import { isOlder } from '../core/model/peer.ts';

const oldest = '2.6.4';

/**
 * Warns once if cls-rtracer is older than the peer range: such versions remove the wrong listener from a request or
 * response. Called when `traceContext` is built. Does nothing if the version is unknown.
 */
export function checkRTracer(): void {
  const version = rTracerVersion();
  if (!isOlder(version, oldest)) return;
  warnOnce(
    'LOCK_RTRACER_OLD',
    `Expected cls-rtracer ${oldest} or newer, got ${version}, which removes wrong listeners from requests: update it`,
  );
}

/** Required by its literal name, which bundlers need. No old version hides its package.json. */
function rTracerVersion(): unknown {
  try {
    return (require('cls-rtracer/package.json') as { version?: unknown }).version;
  } catch {
    return undefined;
  }
}
