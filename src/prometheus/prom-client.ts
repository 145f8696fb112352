import { createRequire } from 'node:module';
import type * as PromClient from 'prom-client';
import { LockConfigError } from '../core/index.ts';

/** Loads `prom-client`, which is an optional peer. Throws `LockConfigError` if it is not installed. */
export function loadClient(): typeof PromClient {
  try {
    return createRequire(__filename)('prom-client') as typeof PromClient;
  } catch (cause) {
    throw new LockConfigError(
      'Expected `prom-client` to be installed for `reenlock/prometheus`: npm install prom-client',
      {
        cause,
      },
    );
  }
}
