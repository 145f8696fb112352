import { LockConfigError } from './errors/mistakes.ts';

/** Whether a version, such as `14.2.0`, is older than `oldest`, such as `15` or `2.6.4`. False if it is unknown. */
export function isOlder(version: unknown, oldest: string): boolean {
  const [found, least] = [version, oldest].map((each) => /^\d+(\.\d+)*/.exec(String(each))?.[0].split('.').map(Number));
  if (found === undefined || least === undefined) return false;
  const at = least.findIndex((part, index) => part !== (found[index] ?? 0));
  return at >= 0 && (found[at] ?? 0) < (least[at] as number);
}

/**
 * The error for a peer that is too old for what uses it. The ranges of optional peers in package.json are open: npm would
 * otherwise refuse to install this package in an application that has an older version for other reasons.
 */
export function tooOld(name: string, found: unknown, oldest: string, user: string): LockConfigError {
  const got = found === undefined ? 'an older one' : String(found);
  return new LockConfigError(
    `Expected \`${name}\` ${oldest} or newer for \`${user}\`, got ${got}: npm install ${name}@latest`,
  );
}

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
