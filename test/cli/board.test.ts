import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Pool } from 'pg';
import type { Locks } from 'reenlock';
import { PostgresStore } from 'reenlock/postgres';
import { createConsumer, packPackage } from '../package/packed.ts';
import { startPostgres } from '../support/postgres/server.ts';
import {
  addressOf,
  redis,
  running,
  start,
  startBoard,
  stopRunning,
  useCommand,
  whileHeld,
  whileHeldIn,
} from './command.ts';

jest.setTimeout(60_000);

/** Runs it to its end. */
async function run(...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = start({}, ...args);
  let [stdout, stderr] = ['', ''];
  child.stdout?.on('data', (chunk) => (stdout += chunk));
  child.stderr?.on('data', (chunk) => (stderr += chunk));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
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

describe('reenlock board', () => {
  useCommand();

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

  it('The command names the option to use if the port is taken', async () => {
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

  it('The command names the client to install if there is none', async () => {
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

  it('The command reports what is wrong if only redis is installed, and shows no password', async () => {
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
      await stopRunning();
    } finally {
      await pool.end();
      await postgres.stop();
    }
  });
});
