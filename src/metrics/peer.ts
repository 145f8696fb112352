import { LockConfigError } from '../core/index.ts';

/**
 * Loads an optional peer of the package, for the subpath that needs it. `load` requires the peer by its literal name, where
 * bundlers see it. Throws `LockConfigError` if the peer is not installed.
 */
export function loadPeer<T>(name: string, subpath: string, load: () => T): T {
  try {
    return load();
  } catch (cause) {
    throw new LockConfigError(
      `Expected \`${name}\` to be installed for \`${subpath}\`, got none: npm install ${name}`,
      { cause },
    );
  }
}
