import { createHash } from 'node:crypto';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { type PostgresServer, startPostgres } from '../support/postgres/server.ts';
import { type Script, startScript } from '../support/processes/processes.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { createConsumer, packPackage } from './packed.ts';

// The package may have to be built, and each process of the deploy is started, put under load, and stopped.
const testMs = 240_000;
const processCount = 3;

const stores = 'node_modules/reenlock/dist/stores';

interface Report {
  readonly runs: number;
  readonly violations: readonly string[];
  readonly errors: readonly string[];
}

type Version = 'older' | 'newer';

describe('During a rolling deploy', () => {
  const consumers = new Map<Version, { readonly folder: string; remove(): void }>();
  let redis: RedisServer;
  let postgres: PostgresServer;
  let folder: string;
  beforeAll(async () => {
    const packed = packPackage();
    for (const version of ['older', 'newer'] as const) {
      const consumer = createConsumer(packed);
      consumers.set(version, consumer);
      cpSync(join(__dirname, 'consumers/rolling/worker.cjs'), join(consumer.folder, 'worker.cjs'));
    }
    makeNewer(join(consumers.get('newer')!.folder, stores));
    redis = await startRedis();
    postgres = await startPostgres();
  }, testMs);
  afterAll(async () => {
    for (const { remove } of consumers.values()) remove();
    await redis.stop();
    await postgres.stop();
  });

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'reenlock-rolling-'));
    for (const name of ['order-1', 'order-2']) writeFileSync(join(folder, `${name}.fence`), '0');
  });
  const running = new Set<Script>();
  afterEach(async () => {
    for (const script of running) script.kill('SIGKILL');
    await Promise.all([...running].map(({ exited }) => exited));
    running.clear();
    rmSync(folder, { recursive: true });
  });

  async function start(version: Version, store: string, address: string): Promise<Script> {
    const file = join(consumers.get(version)!.folder, 'worker.cjs');
    const script = startScript(file, { execArgv: [], args: [store, address, folder], timeoutMs: testMs });
    running.add(script);
    await script.once((message) => message === 'runs');
    return script;
  }

  async function stop(script: Script): Promise<Report> {
    script.kill('SIGTERM');
    const report = await script.once<Report>((message) => typeof message === 'object');
    expect(await script.exited).toMatchObject({ code: 0, stderr: '' });
    running.delete(script);
    return report;
  }

  it.each(['redis', 'postgres'])(
    'on %s, two versions share their locks: none is held twice, every fence is higher, nobody waits in vain',
    async (store) => {
      const address = store === 'redis' ? redis.url : postgres.url;
      const scripts = await Promise.all(Array.from({ length: processCount }, () => start('older', store, address)));
      const reports: Report[] = [];
      for (let i = 0; i < processCount; i++) {
        // The new process is at work before an old one is stopped, and there are both versions until the last.
        scripts.push(await start('newer', store, address));
        reports.push(await stop(scripts.shift()!));
      }
      // And back again: a deploy may be undone.
      scripts.push(await start('older', store, address));
      for (const script of scripts) reports.push(await stop(script));
      expect(reports.flatMap(({ violations, errors }) => [...violations, ...errors])).toEqual([]);
      for (const { runs } of reports) expect(runs).toBeGreaterThan(0);
    },
    testMs,
  );

  /** A version in this process, with locks of their own. */
  function open(version: Version, prefix: string) {
    // By their paths: jest has the sources in the place of the package's names.
    const load = createRequire(join(consumers.get(version)!.folder, 'node_modules/reenlock/dist/core/index.js'));
    const { createLocks, lock, runInTrace } = load('./index.js') as typeof import('../../src/core/index.ts');
    const { RedisStore } = load('../stores/redis.js') as typeof import('../../src/stores/redis.ts');
    const client = new Redis(redis.url);
    const locks = createLocks({ store: new RedisStore({ client, prefix }) });
    return {
      client,
      locks,
      lock,
      work: <T>(job: () => Promise<T>): Promise<T> => runInTrace(job, { locks }),
      acquire: () => runInTrace(() => lock.run('order:1', ({ fence }) => fence), { locks }),
      async close(): Promise<void> {
        await locks.close();
        await client.quit();
      },
    };
  }

  const refused = { code: 'ERR_LOCK_STORE', outcome: 'not-applied', message: expect.stringContaining('newer version') };

  it('A process that meets a lock of a later format rejects each call with that reason, and works on once it is gone', async () => {
    const { client, acquire, close } = open('older', 'later:');
    const record = 'later:{order:1}:lock';
    await client.hset(record, 'format', '2');
    await expect(acquire()).rejects.toMatchObject(refused);
    await client.del(record);
    expect(await acquire()).toBeGreaterThan(0);
    await close();
  });
});

/**
 * Makes of a build one of a later version with the same formats: its scripts have other digests, and its SQL is of a newer
 * revision.
 */
function makeNewer(stores: string): void {
  changeScripts(stores, (source) => `${source}\n-- of a later version`);
  const schema = join(stores, 'postgres/sql/schema.js');
  const text = readFileSync(schema, 'utf8');
  const newer = text.replace(/(exports\.revision = )(\d+);/, (_, head, revision) => `${head}${Number(revision) + 1};`);
  if (newer === text) throw new Error('Expected the revision in the build of the schema');
  writeFileSync(schema, newer);
}

function changeScripts(stores: string, change: (source: string) => string): void {
  const file = join(stores, 'redis/scripts.generated.js');
  const scripts = createRequire(file)(file) as Record<string, { name: string; source: string }>;
  const lines = Object.entries(scripts).map(([key, { name, source }]) => {
    const changed = change(source);
    const sha1 = createHash('sha1').update(changed).digest('hex');
    return `exports.${key} = ${JSON.stringify({ name, sha1, source: changed })};`;
  });
  // What was loaded here is the module as it was.
  jest.resetModules();
  writeFileSync(file, lines.join('\n'));
}
