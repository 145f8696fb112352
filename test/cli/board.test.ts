import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { Pool } from 'pg';
import type { Browser } from 'playwright-core';
import { createLocks, type LockStore, type Locks, lock, runInTrace } from 'reenlock';
import { PostgresStore } from 'reenlock/postgres';
import { RedisStore } from 'reenlock/redis';
import { createConsumer, packPackage } from '../package/packed.ts';
import { installMs, launchBrowser } from '../support/http/browser.ts';
import { startPostgres } from '../support/postgres/server.ts';
import { watchLeaks } from '../support/processes/leaks.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';

jest.setTimeout(60_000);

const running: ChildProcess[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map(stop));
});
watchLeaks();

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'close');
}

let consumer: ReturnType<typeof createConsumer>;
let redis: RedisServer;
beforeAll(async () => {
  consumer = createConsumer(packPackage());
  redis = await startRedis();
});
afterAll(async () => {
  consumer?.remove();
  await redis?.stop();
});

/** The command, as `npx reenlock` starts it. */
function start(env: Record<string, string>, ...args: string[]): ChildProcess {
  const folder = join(consumer.folder, 'node_modules/reenlock');
  const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { bin: { reenlock: string } };
  const child = spawn(process.execPath, [join(folder, bin.reenlock), ...args], {
    cwd: consumer.folder,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.push(child);
  return child;
}

/** Runs it to its end. */
async function run(...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = start({}, ...args);
  let [stdout, stderr] = ['', ''];
  child.stdout?.on('data', (chunk) => (stdout += chunk));
  child.stderr?.on('data', (chunk) => (stderr += chunk));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
}

/** Starts the board; resolves with the address that it prints. */
async function startBoard(...args: string[]): Promise<{ child: ChildProcess; address: URL }> {
  const child = start({}, 'board', ...args);
  return { child, address: await addressOf(child) };
}

async function addressOf(child: ChildProcess): Promise<URL> {
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    if (line.startsWith('http://')) return new URL(line);
  }
  throw new Error('The command ended without an address');
}

/** The cookie that the address gives, once. */
async function openBoard(address: URL): Promise<string> {
  const response = await fetch(address, { redirect: 'manual' });
  return (response.headers.get('set-cookie') ?? '').split(';')[0] as string;
}

async function forceRelease(address: URL, cookie: string, locks: Locks): Promise<number> {
  const { holds } = await locks.inspect('order:42');
  const response = await fetch(new URL('/release', address), {
    method: 'POST',
    headers: { cookie, origin: address.origin, 'content-type': 'application/json' },
    body: JSON.stringify({ id: 'order:42', fence: holds[0]?.fence, reason: 'test' }),
  });
  await response.body?.cancel();
  return response.status;
}

/** While somebody holds `order:42` in the store at the server. */
async function whileHeld<T>(work: (locks: Locks) => Promise<T>): Promise<T> {
  const client = new Redis(redis.url);
  try {
    return await whileHeldIn(new RedisStore({ client }), work);
  } finally {
    client.disconnect();
  }
}

async function whileHeldIn<T>(store: LockStore, work: (locks: Locks) => Promise<T>): Promise<T> {
  const locks = createLocks({ store });
  try {
    return await runInTrace(
      async () => {
        await lock.acquire('order:42');
        return work(locks);
      },
      { locks },
    );
  } finally {
    await locks.close({ drainMs: 0 });
  }
}

describe('reenlock board', () => {
  it('The address that it prints works once: the browser that opens it gets a cookie, everybody else is refused', async () => {
    const { address } = await startBoard(redis.url);
    expect(address.hostname).toBe('127.0.0.1');
    expect((await fetch(new URL('/', address))).status).toBe(403);
    const cookie = await openBoard(address);
    expect(cookie).toMatch(/^reenlock-board=/);
    expect((await fetch(new URL('/', address), { headers: { cookie } })).status).toBe(200);
    const second = await fetch(address, { redirect: 'manual' });
    expect([second.status, second.headers.get('set-cookie')]).toEqual([403, null]);
  });

  it('A page of another site that has a name for the loopback address is refused', async () => {
    const { address } = await startBoard(redis.url);
    const cookie = await openBoard(address);
    const { request } = await import('node:http');
    const status = await new Promise((resolve) => {
      const headers = { host: 'evil.example', cookie };
      request(new URL('/', address), { headers }, (res) => resolve(res.resume().statusCode)).end();
    });
    expect(status).toBe(421);
  });

  it('The board only shows locks, unless it is started with --allow-release', async () => {
    await whileHeld(async (locks) => {
      for (const [args, status] of [
        [[], 403],
        [['--allow-release'], 200],
      ] as const) {
        const { address } = await startBoard(redis.url, ...args);
        expect(await forceRelease(address, await openBoard(address), locks)).toBe(status);
      }
    });
  });

  it('SIGINT ends it, with exit code 0, while a page is open', async () => {
    const { child, address } = await startBoard(redis.url);
    const cookie = await openBoard(address);
    const stream = await fetch(new URL('/stream', address), { headers: { cookie } });
    const closed = once(child, 'close');
    child.kill('SIGINT');
    expect(await closed).toEqual([0, null]);
    await stream.body?.cancel().catch(() => {});
  });

  it.each<[string, string[], number, RegExp]>([
    ['no command', [], 2, /Expected the command `board`, got none\n\nUsage: /],
    ['no URL', ['board'], 2, /Expected the URL of a store, as an argument or in REENLOCK_URL, got none/],
    ['a wrong URL', ['board', 'http://x:secret@y'], 2, /Expected a URL as redis:.*got one that begins with http:/],
    ['an unknown option', ['board', 'redis://x', '--fast'], 2, /Unknown option '--fast'/],
    ['a bad port', ['board', 'redis://x', '--port', 'many'], 2, /Expected `--port` to be a number .* got `many`/],
    [
      'no server',
      ['board', 'redis://u:secret@127.0.0.1:1'],
      1,
      /Expected a server at redis:\/\/127.0.0.1:1, got ECONNREFUSED\n$/,
    ],
    [
      'no PostgreSQL',
      ['board', 'postgres://u:secret@127.0.0.1:1/shop'],
      1,
      /at postgres:\/\/127.0.0.1:1\/shop, got ECONNREFUSED\n$/,
    ],
    ['a password that the server does not take', ['board', 'redis://u:secret@REDIS'], 1, /got WRONGPASS/],
  ])('It says what is wrong, and no password: %s', async (_, args, code, message) => {
    const result = await run(...args.map((arg) => arg.replace('REDIS', new URL(redis.url).host)));
    expect(result).toMatchObject({ code, stdout: '' });
    expect(result.stderr).toMatch(message);
    expect(result.stderr).not.toContain('secret');
  });

  it('It says which option to use if the port is taken', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const { code, stderr } = await run('board', redis.url, '--port', String(port));
    server.close();
    expect([code, stderr]).toEqual([
      1,
      `reenlock: Expected port ${port} to be free, got EADDRINUSE. Choose another one with \`--port\`\n`,
    ]);
  });

  /** In a folder where only these clients of Redis are installed. */
  function beside(clients: readonly string[], ...args: string[]): { child: ChildProcess; remove(): void } {
    const { folder, remove } = createConsumer(packPackage());
    for (const name of ['ioredis', 'redis', 'iovalkey']) {
      if (!clients.includes(name)) rmSync(join(folder, 'node_modules', name), { force: true });
    }
    const bin = join(folder, 'node_modules/reenlock/dist/cli/main.js');
    const child = spawn(process.execPath, [bin, 'board', ...args], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
    running.push(child);
    return { child, remove };
  }

  it('It says which client to install if there is none', async () => {
    const { child, remove } = beside([], redis.url);
    let stderr = '';
    child.stderr?.on('data', (chunk) => (stderr += chunk));
    await once(child, 'close');
    remove();
    expect(stderr).toBe(
      'reenlock: Expected `ioredis` or `redis` or `iovalkey` to be installed, got none: npm install ioredis\n',
    );
  });

  it.each(['redis', 'iovalkey'])('It works where only %s is installed', async (client) => {
    const { child, remove } = beside([client], redis.url, '--allow-release');
    const address = await addressOf(child);
    await whileHeld(async (locks) => {
      expect(await forceRelease(address, await openBoard(address), locks)).toBe(200);
    });
    child.kill('SIGINT');
    expect(await once(child, 'close')).toEqual([0, null]);
    remove();
  });

  it('It says what is wrong where only redis is installed, and no password', async () => {
    const { child, remove } = beside(['redis'], 'redis://u:secret@127.0.0.1:1');
    let stderr = '';
    child.stderr?.on('data', (chunk) => (stderr += chunk));
    expect(await once(child, 'close')).toEqual([1, null]);
    remove();
    expect(stderr).toBe('reenlock: Expected a server at redis://127.0.0.1:1, got ECONNREFUSED\n');
  });

  it('It takes the address from REENLOCK_URL, so that the list of processes does not show a password', async () => {
    const child = start({ REENLOCK_URL: redis.url }, 'board');
    expect(child.spawnargs.join()).not.toContain('redis://');
    const address = await addressOf(child);
    expect((await fetch(new URL('/', address), { headers: { cookie: await openBoard(address) } })).status).toBe(200);
  });

  it('The board shows and releases the locks of a PostgreSQL database', async () => {
    const postgres = await startPostgres();
    const pool = new Pool({ connectionString: postgres.url });
    // The server may end connections that the pool has not closed yet.
    pool.on('error', () => {});
    const store = new PostgresStore({ pool });
    await store.migrate();
    try {
      await whileHeldIn(store, async (locks) => {
        const { address } = await startBoard(postgres.url, '--allow-release');
        expect(await forceRelease(address, await openBoard(address), locks)).toBe(200);
        expect((await locks.inspect('order:42')).holds).toEqual([]);
      });
      await Promise.all(running.splice(0).map(stop));
    } finally {
      await pool.end();
      await postgres.stop();
    }
  });

  describe('in a browser', () => {
    let browser: Browser;
    beforeAll(async () => {
      browser = await launchBrowser();
    }, installMs);
    afterAll(() => browser?.close());

    it('The page shows who holds the lock', async () => {
      await whileHeld(async () => {
        const { address } = await startBoard(redis.url);
        const page = await browser.newPage();
        await page.goto(address.href);
        await page.getByText('order:42').first().waitFor();
        expect(page.url()).not.toContain('token');
        await page.close();
      });
    });
  });
});
