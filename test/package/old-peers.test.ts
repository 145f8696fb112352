import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { matrix } from '../support/matrix.ts';
import { createConsumer, type Packed, packPackage, root } from './packed.ts';

let packed: Packed;
beforeAll(() => {
  packed = packPackage();
});

/** The versions that the registry of these tests has of every package, without code: npm looks at names and versions alone. */
const versions = new Set<string>(['2.6.4', '99.0.0']);

function serveVersions({ url = '' }: IncomingMessage, res: ServerResponse): void {
  const name = decodeURIComponent(url.slice(1));
  const manifests = [...versions].map((version) => {
    const dist = { tarball: `http://127.0.0.1/${name}-${version}.tgz`, shasum: '0'.repeat(40) };
    return [version, { name, version, dist }];
  });
  const packument = { name, 'dist-tags': { latest: '99.0.0' }, versions: Object.fromEntries(manifests) };
  res.setHeader('Content-Type', 'application/json');
  res.end(JSON.stringify(packument));
}

describe('npm', () => {
  let registry: Server;
  let folder: string;
  beforeAll(async () => {
    registry = createServer(serveVersions).listen(0, '127.0.0.1');
    await once(registry, 'listening');
  });
  afterAll(() => {
    registry.close();
    registry.closeAllConnections();
  });
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'reenlock-old-peer-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  async function install(dependencies: Readonly<Record<string, string>>): Promise<object> {
    const manifest = { name: 'application', version: '1.0.0', dependencies };
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
    const { port } = registry.address() as AddressInfo;
    const registries = [`--registry=http://127.0.0.1:${port}/`, `--cache=${folder}/cache`];
    const args = ['install', '--package-lock-only', '--no-audit', '--no-fund', '--no-update-notifier', ...registries];
    await promisify(execFile)('npm', args, { cwd: folder });
    const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as { packages: object };
    return lock.packages;
  }

  const prerelease = '7.0.0-beta.1';
  const old = {
    redis: '4.7.1',
    '@nestjs/core': '10.4.22',
    '@nestjs/common': '10.4.22',
    fastify: '4.29.1',
    'prom-client': '14.2.0',
    ioredis: '4.31.0',
    hono: '3.12.12',
    pg: '7.18.2',
    rxjs: '6.6.7',
    iovalkey: '0.3.3',
    express: '3.21.2',
    koa: '1.7.1',
    mysql2: '1.7.0',
    '@opentelemetry/api': '1.0.0',
  };
  for (const version of [...Object.values(old), prerelease]) versions.add(version);
  type Alongside = readonly [title: string, versions: Readonly<Record<string, string>>];
  const alone = Object.entries(old).map<Alongside>(([name, version]) => [`${name} ${version}`, { [name]: version }]);

  it.each(
    matrix<Alongside>([['an old version of each optional peer', old]], () => [
      ...alone,
      ['a prerelease', { redis: prerelease }],
    ]),
  )('npm installs the package alongside %s', async (_, others) => {
    const packages = await install({ 'cls-rtracer': '2.6.4', reenlock: `file:${packed.tarball}`, ...others });
    const installed = ['reenlock', ...Object.keys(others)].map((name) => `node_modules/${name}`);
    expect(Object.keys(packages)).toEqual(expect.arrayContaining(installed));
  });

  it('The old versions that npm is asked about are those of all optional peers', () => {
    const { peerDependenciesMeta } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      peerDependenciesMeta: object;
    };
    expect(Object.keys(old).sort()).toEqual(Object.keys(peerDependenciesMeta).sort());
  });
});

describe('A peer that is too old is named at its first use, with the version that is needed', () => {
  let consumer: ReturnType<typeof createConsumer>;
  beforeAll(() => {
    consumer = createConsumer(packed, {
      redis: 'node_modules/redis4',
      ioredis: 'node_modules/ioredis4',
      pg: 'node_modules/pg7',
      hono: 'node_modules/hono3',
      fastify: 'node_modules/fastify4',
      '@opentelemetry/api': 'node_modules/otel-api18',
    });
    // These tell their version, so the newest ones can pass for old ones.
    writeOld('prom-client', '14.2.0');
    rmSync(join(consumer.folder, 'node_modules/@nestjs'));
    writeOld('@nestjs/core', '10.4.22');
    writeOld('@nestjs/common', '10.4.22');
  });
  afterAll(() => consumer?.remove());

  function writeOld(name: string, version: string): void {
    const folder = join(consumer.folder, 'node_modules', name);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name, version, main: 'index.js' }));
    const installed = join(root, 'node_modules', name);
    writeFileSync(join(folder, 'index.js'), `module.exports = require(${JSON.stringify(installed)});`);
  }

  /** Runs code in an application that has old peers. Returns what the code prints: its error. */
  function run(code: string): string {
    const attempt = `(async () => { ${code} })().catch((error) => console.log(error.code, error.message))`;
    return execFileSync('node', ['-e', attempt], { cwd: consumer.folder, encoding: 'utf8', timeout: 20_000 });
  }

  const clients =
    'Expected `client` to be a client of ioredis 5 or newer or of iovalkey, or of node-redis 5.8 or newer by `createClient`, `createSentinel` or `createCluster`';
  const pools = 'Expected `pool` to be a Pool of the pg package, 8 or newer';

  it.each([
    ['redis', "require('redis').createClient()"],
    ['redis', "require('redis').createCluster({ rootNodes: [{}] })"],
    ['ioredis', "new (require('ioredis'))({ lazyConnect: true })"],
    ['ioredis', "new (require('ioredis').Cluster)([{}], { lazyConnect: true })"],
  ])('RedisStore refuses a client of %s 4: %s', (name, client) => {
    const code = `new (require('reenlock/redis').RedisStore)({ client: ${client} })`;
    expect(run(code)).toBe(`ERR_LOCK_CONFIG ${clients}, got one of ${name} 4: npm install ${name}@latest\n`);
  });

  it.each([
    ['PostgresStore', 'postgres'],
    ['PostgresCas', 'redis'],
  ])('%s refuses a pool of pg 7', (store, subpath) => {
    const code = `new (require('reenlock/${subpath}').${store})({ pool: new (require('pg').Pool)() })`;
    expect(run(code)).toBe(`ERR_LOCK_CONFIG ${pools}, got one of pg 7: npm install pg@latest\n`);
  });

  it('The middleware for Hono refuses the context of Hono 3', () => {
    const code = `
      const app = new (require('hono').Hono)();
      app.use(require('reenlock/hono').traceContext({ locks: require('reenlock').createLocks() }));
      app.onError((error) => { throw error; });
      await app.fetch(new Request('http://localhost/'), { incoming: {}, outgoing: { setHeader() {} } });`;
    expect(run(code)).toBe(
      'ERR_LOCK_CONFIG Expected `hono` 4 or newer for `reenlock/hono`, got an older one: npm install hono@latest\n',
    );
  });

  it.each(['traceContext()', 'lockBoard({ authorize: () => false })'])('Fastify 4 refuses the plugin %s', (plugin) => {
    const code = `await require('fastify')().register(require('reenlock/fastify').${plugin})`;
    expect(run(code)).toMatch(
      /^FST_ERR_PLUGIN_VERSION_MISMATCH .* expected '>=5' fastify version, '4\.\d+\.\d+' is installed\n$/,
    );
  });

  it('instrumentLocks refuses @opentelemetry/api 1.8', () => {
    const code = "require('reenlock/otel').instrumentLocks(require('reenlock').createLocks())";
    expect(run(code)).toBe(
      'ERR_LOCK_CONFIG Expected `@opentelemetry/api` 1.9 or newer for `reenlock/otel`, got an older one: npm install @opentelemetry/api@latest\n',
    );
  });

  it.each([
    ['prom-client', '15', '14.2.0', 'prometheus', "collectLockMetrics(require('reenlock').createLocks())"],
    ['@nestjs/core', '11', '10.4.22', 'nest', 'LocksModule.forRoot({})'],
  ])('%s older than %s is refused', (name, oldest, version, subpath, call) => {
    expect(run(`require('reenlock/${subpath}').${call}`)).toBe(
      `ERR_LOCK_CONFIG Expected \`${name}\` ${oldest} or newer for \`reenlock/${subpath}\`, got ${version}: npm install ${name}@latest\n`,
    );
  });

  it('Everything that needs no old peer works alongside them', () => {
    const code = `
      const { createLocks, getLock } = require('reenlock');
      const { lockOn, traceContext } = require('reenlock/koa');
      const app = new (require('koa'))().use(traceContext({ locks: createLocks() })).use(lockOn('order:42'));
      app.use(async (ctx) => { ctx.body = await getLock('order:42').run(({ fence }) => String(fence === ctx.state.lock.fence)); });
      const server = app.listen(0, '127.0.0.1', async () => {
        console.log(await (await fetch('http://127.0.0.1:' + server.address().port)).text());
        process.exit();
      });`;
    expect(run(code)).toBe('true\n');
  });
});
