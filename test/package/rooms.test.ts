import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './packed.ts';

const value = (from: string): string => `import { a } from '${from}';\nexport const b: unknown = a;\n`;
const type = (from: string): string => `import type { A } from '${from}';\nexport type B = A;\n`;

/** A file that breaks a rule of the rooms, and the rule that it breaks. */
const faults: readonly (readonly [what: string, file: string, source: string, rule: string])[] = [
  ['a circle of type imports', 'src/core/base/circle-a.ts', type('./circle-b.ts'), 'no-circle'],
  ['an upward import', 'src/core/wait/upward.ts', type('../scope/scope.ts'), 'arrows-of-wait'],
  ['an import of the room beside it', 'src/core/wait/beside.ts', type('../lease/grant.ts'), 'arrows-of-wait'],
  ['a store in the core', 'src/core/lock/store.ts', value('../stores/redis/redis-store.ts'), 'arrows-of-lock'],
  ['an adapter in the core', 'src/core/http/adapter.ts', value('../../express/index.ts'), 'arrows-of-http'],
  ['a reach past a face', 'src/core/http/reach.ts', type('../lease/watchdog.ts'), 'face-of-lease'],
  ['a reach past the face of a store', 'src/core/stores/cas/reach.ts', type('../redis/channel.ts'), 'face-of-redis'],
  ['the core in a store', 'src/core/stores/memory/core.ts', value('../../runtime/locks.ts'), 'arrows-of-memory'],
  ['one store in another', 'src/core/stores/quorum/other.ts', value('../redis/redis-store.ts'), 'arrows-of-stores'],
  ['a framework in the core', 'src/core/http/framework.ts', type('express'), 'core-knows-no-framework'],
  ['a client library in the core', 'src/core/lock/client.ts', type('ioredis'), 'only-drivers-know-a-client'],
  ['a client library in a store', 'src/core/stores/redis/client.ts', type('ioredis'), 'only-drivers-know-a-client'],
  ['one adapter in another', 'src/koa/other.ts', value('../node/index.ts'), 'adapters-do-not-know-each-other'],
  ['an adapter in the metrics', 'src/otel/other.ts', value('../express/index.ts'), 'adapters-do-not-know-each-other'],
  ['a store in the metrics', 'src/prometheus/store.ts', value('../core/redis.ts'), 'adapters-do-not-know-each-other'],
  [
    'a driver in another store',
    'src/core/stores/cas/ioredis.ts',
    type('../redis/drivers/ioredis/single-driver.ts'),
    'face-of-redis',
  ],
  [
    'another adapter in that of Nest',
    'src/nest/other.ts',
    value('../node/index.ts'),
    'adapters-do-not-know-each-other',
  ],
  [
    'the guard of Nest in another adapter',
    'src/express/nest.ts',
    value('../nest/lock-on.ts'),
    'adapters-do-not-know-each-other',
  ],
  [
    'a store in the adapter of Fastify',
    'src/fastify/store.ts',
    value('../core/redis.ts'),
    'adapters-do-not-know-each-other',
  ],
  [
    'the lock room in the adapter of Hono',
    'src/hono/inside.ts',
    value('../core/lock/acquire.ts'),
    'adapters-do-not-know-each-other',
  ],
  ['Nest in the core', 'src/core/http/nest.ts', type('@nestjs/common'), 'core-knows-no-framework'],
  ['Fastify in the core', 'src/core/http/fastify.ts', type('fastify'), 'core-knows-no-framework'],
  ['Hono in the core', 'src/core/http/hono.ts', type('hono'), 'core-knows-no-framework'],
  ['a store in an adapter', 'src/koa/store.ts', value('../core/redis.ts'), 'adapters-do-not-know-each-other'],
  [
    'the inside of the core in an adapter',
    'src/express/inside.ts',
    value('../core/lock/acquire.ts'),
    'adapters-do-not-know-each-other',
  ],
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
    for (const [file, source] of files) writeFileSync(join(folder, file), source);
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
