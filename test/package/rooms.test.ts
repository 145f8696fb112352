import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { root } from './packed.ts';

const value = (from: string): string => `import { a } from '${from}';\nexport const b: unknown = a;\n`;
const type = (from: string): string => `import type { A } from '${from}';\nexport type B = A;\n`;

/** A file that breaks a rule of the rooms, and the rule that it breaks. */
const faults: readonly (readonly [what: string, file: string, source: string, rule: string])[] = [
  ['a circle of type imports', 'src/core/base/circle-a.ts', type('./circle-b.ts'), 'no-circle'],
  ['an upward import', 'src/core/wait/upward.ts', type('../scope/scope.ts'), 'arrows-of-core-wait'],
  ['a store in the core', 'src/core/lock/store.ts', value('../../stores/redis.ts'), 'arrows-of-core-lock'],
  ['the client in the machine', 'src/core/machine/up.ts', type('../client/access.ts'), 'arrows-of-core-machine'],
  ['an adapter in the life of a request', 'src/http/adapter.ts', value('../express/index.ts'), 'arrows-of-http'],
  ['the lock room in the board', 'src/board/lock.ts', value('../core/lock/acquire.ts'), 'arrows-of-board'],
  ['a reach past a face', 'src/core/scope/reach.ts', type('../lease/watchdog.ts'), 'face-of-core-lease'],
  ['a reach past the face of a store', 'src/stores/cas/reach.ts', type('../redis/channel.ts'), 'face-of-stores-redis'],
  ['a reach past the face of the board', 'src/koa/reach.ts', type('../board/feed.ts'), 'face-of-board'],
  ['the core in a store', 'src/core/memory/core.ts', value('../runtime/locks.ts'), 'arrows-of-core-memory'],
  ['the store in memory in another', 'src/stores/cas/m.ts', type('../../core/memory/edges.ts'), 'arrows-of-stores-cas'],
  ['one store in another', 'src/stores/quorum/other.ts', value('../redis/redis-store.ts'), 'arrows-of-stores-quorum'],
  ['a room without arrows', 'src/stores/etcd/etcd-store.ts', type('../../core/model/store.ts'), 'a-room-has-arrows'],
  ['a framework in the core', 'src/core/lock/framework.ts', type('express'), 'frameworks-stay-in-their-rooms'],
  ['a client library in the core', 'src/core/lock/client.ts', type('ioredis'), 'only-drivers-know-a-client'],
  ['one adapter in another', 'src/koa/other.ts', value('../node/index.ts'), 'arrows-of-koa'],
  ['an adapter in the metrics', 'src/otel/other.ts', value('../express/index.ts'), 'arrows-of-otel'],
  ['a store in the metrics', 'src/prometheus/store.ts', value('../stores/redis.ts'), 'arrows-of-prometheus'],
  ['another adapter in that of Nest', 'src/nest/other.ts', value('../node/index.ts'), 'arrows-of-nest'],
  ['the guard of Nest in another adapter', 'src/express/nest.ts', value('../nest/lock-on.ts'), 'arrows-of-express'],
  ['a store in the adapter of Fastify', 'src/fastify/store.ts', value('../stores/redis.ts'), 'arrows-of-fastify'],
  ['the lock room in the adapter of Hono', 'src/hono/inside.ts', value('../core/lock/acquire.ts'), 'arrows-of-hono'],
  ['the store of a server in the test kit', 'src/testing/store.ts', value('../stores/redis.ts'), 'arrows-of-testing'],
];

describe('The lint rules for the rooms of the sources', () => {
  let broken: ReadonlySet<string>;
  beforeAll(() => {
    const files = faults.map(([, file, source]) => [file, source] as const);
    broken = violations([...files, ['src/core/base/circle-b.ts', type('./circle-a.ts')]]);
  });

  it.each(faults)('refuse %s', (_, file, __, rule) => {
    expect([...broken]).toContain(`${file} ${rule}`);
  });

  it('find nothing else to refuse', () => {
    const seeded = [...faults.map(([, file]) => file), 'src/core/base/circle-b.ts'];
    expect([...broken].filter((each) => !seeded.some((file) => each.startsWith(file)))).toEqual([]);
  });
});

/** The sources with these files added: which file breaks which rule. */
function violations(files: readonly (readonly [file: string, source: string])[]): ReadonlySet<string> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'reenlock-rooms-')));
  try {
    for (const each of ['src', '.dependency-cruiser.cjs', 'tsconfig.json', 'package.json']) {
      cpSync(join(root, each), join(folder, each), { recursive: true });
    }
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    for (const [file, source] of files) {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      writeFileSync(join(folder, file), source);
    }
    const command = join(root, 'node_modules/.bin/depcruise');
    const { stdout, stderr } = spawnSync(command, ['src', '--output-type', 'json'], {
      cwd: folder,
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
    });
    if (!stdout.startsWith('{')) throw new Error(`depcruise said: ${stdout}${stderr}`);
    const { summary } = JSON.parse(stdout) as {
      summary: { violations: readonly { from: string; rule: { name: string } }[] };
    };
    return new Set(summary.violations.map(({ from, rule }) => `${from} ${rule.name}`));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
