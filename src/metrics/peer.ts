import { createRequire } from 'node:module';
import { LockConfigError } from '../core/index.ts';

/** Loads an optional peer of the package, for the subpath that needs it. Throws `LockConfigError` if it is not installed. */
export function loadPeer<T>(name: string, subpath: string): T {
  try {
    return createRequire(__filename)(name) as T;
  } catch (cause) {
    throw new LockConfigError(
      `Expected \`${name}\` to be installed for \`${subpath}\`, got none: npm install ${name}`,
      { cause },
    );
  }
}
