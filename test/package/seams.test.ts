import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { root } from './packed.ts';

/**
 * What tests may import of the sources beside the public names, `base`, `model`, the stores and their own room: seams that
 * are kept where they are. Whatever else is inside a room may move without a test of another room.
 */
const seams: readonly (readonly [path: string, reason: string])[] = [
  ['core/runtime/locks.ts', 'a `Locks` on a clock that a test drives'],
  ['core/runtime/default-locks.ts', 'such a `Locks` as the default of the process'],
  ['core/scope/scope.ts', 'the scope that a request has'],
  ['core/scope/context.ts', 'what runs in that scope'],
  ['core/lock/acquire.ts', 'an acquire by a scope that is named'],
  ['http/guard.ts', 'a guard without a framework'],
  ['cli/store.ts', 'the store that the command opens'],
  ['nest/error-filter.ts', 'the filter of `LocksModule`, in an application without the module'],
  ['testing/contract/harness.ts', 'the contract of stores, with the runner that it is given'],
  ['testing/contract/stage.ts', 'the processes and waiters that the contract plays with'],
  ['testing/manual-clock.ts', 'the clock of the test kit, which the tests here drive, too'],
  ['http/response/connection-watch.ts', 'what is known of a server’s connections, to see that nothing is left'],
];
const open = /^((core\/(base|model|machine|memory)|stores)\/|core\/[^/]+$|[^/]+\/index\.ts$)/;

it('A test reaches into another room of the sources only through a declared seam', () => {
  const reached = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .flatMap((name) => importsOf(name).map((imported) => ({ test: name, imported })));
  expect(reached.length).toBeGreaterThan(100);
  const isAllowed = ({ test, imported }: { test: string; imported: string }): boolean =>
    open.test(imported) || seams.some(([path]) => path === imported) || roomOf(imported) === roomOf(test);
  expect(reached.filter((one) => !isAllowed(one))).toEqual([]);
  expect(seams.filter(([path]) => !reached.some(({ imported }) => imported === path))).toEqual([]);
});

/** The sources that a test's file imports. */
function importsOf(name: string): string[] {
  const imports = readFileSync(join(root, 'test', name), 'utf8').matchAll(/from '(\.[^']*)'/g);
  return [...imports]
    .map(([, path = '']) => relative(join(root, 'src'), normalize(join(root, 'test', dirname(name), path))))
    .filter((path) => !path.startsWith('..'));
}

/** The first folder, `core` apart. */
function roomOf(path: string): string {
  return path.replace(/^core\//, '').split('/')[0] as string;
}
