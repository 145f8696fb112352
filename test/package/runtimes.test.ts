import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { matrix } from '../support/matrix.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { createConsumer, packPackage, root } from './packed.ts';

interface Runtime {
  readonly name: string;
  readonly command: () => readonly [binary: string, ...args: string[]];
}

/** The package may have to be built, and a runtime to be installed. */
const installMs = 600_000;
const runtimes = matrix<Runtime>([{ name: 'node', command: () => [process.execPath] }], () => [
  { name: 'bun', command: () => [installed('bun')] },
  { name: 'deno', command: () => [installed('deno'), 'run', '--quiet', '--allow-all', '--node-modules-dir=manual'] },
]);

const perStore = (store: string): string[] => [
  `${store} jobs 5 most inside 1`,
  `${store} try of another null`,
  `${store} timeout ERR_LOCK_TIMEOUT`,
  `${store} released false true`,
  `${store} batch`,
  ...['node', 'express', 'koa', 'fastify', 'hono', 'hono by fetch'].map((name) => `${store} ${name} 4,5,6,7,8,9 6 200`),
  // It names no trace in its response.
  `${store} fetch handler 4,5,6,7,8,9 1 200`,
  `${store} stream 1 free when its client has left`,
  `${store} stream 1 free at its end`,
  `${store} wait AbortError`,
];

describe.each(runtimes)('On $name', ({ command }) => {
  let consumer: ReturnType<typeof createConsumer>;
  let redis: RedisServer;
  beforeAll(async () => {
    consumer = createConsumer(packPackage());
    writeFileSync(join(consumer.folder, 'package.json'), JSON.stringify({ type: 'module' }));
    cpSync(join(__dirname, 'consumers/runtimes/scenes.mjs'), join(consumer.folder, 'scenes.mjs'));
    redis = await startRedis();
  }, installMs);
  afterAll(async () => {
    consumer.remove();
    await redis.stop();
  });

  it(
    'Jobs and requests exclude each other and re-enter, in memory and in Redis, with every framework, and a stream holds the lock to its end',
    () => {
      const [binary, ...args] = command();
      const output = execFileSync(binary, [...args, 'scenes.mjs'], {
        cwd: consumer.folder,
        env: { ...process.env, REDIS_URL: redis.url, NO_COLOR: '1' },
        encoding: 'utf8',
      });
      expect(output.trimEnd().split('\n')).toEqual(['memory', 'redis'].flatMap(perStore));
    },
    installMs,
  );
});

/** The binary of a runtime, from the package of its name, which is too large to be installed for everybody. */
function installed(name: string): string {
  const folder = join(root, 'node_modules/.cache/runtimes', name);
  mkdirSync(folder, { recursive: true });
  const flags = ['--no-save', '--no-package-lock', '--no-audit', '--no-fund', '--loglevel=error'];
  execFileSync('npm', ['install', '--prefix', folder, ...flags, name], { encoding: 'utf8' });
  return join(folder, 'node_modules/.bin', name);
}
