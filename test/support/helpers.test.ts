import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import Redis from 'ioredis';
import { longest } from './jest/longest.json';
import { runScript, startScript } from './processes/processes.ts';
import { redisBinary } from './redis/binary.ts';
import { disconnectTimeout } from './redis/client.ts';
import { startRedis } from './redis/server.ts';

describe('startRedis', () => {
  it('starts servers side by side, each on its own port, and stops them', async () => {
    const servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
    expect(new Set(servers.map((server) => server.port)).size).toBe(3);
    await Promise.all(servers.map((server) => server.stop()));
    const socket = connect(servers[0]!.port, '127.0.0.1');
    await expect(once(socket, 'connect')).rejects.toThrow('ECONNREFUSED');
  });

  it('restarts on the same port, without its data, after a kill', async () => {
    const server = await startRedis({ args: ['--maxmemory', '8mb'] });
    const client = new Redis(server.url, { retryStrategy: () => 20, disconnectTimeout });
    await client.set('key', 'value');
    const { pid } = server;
    await server.kill();
    await server.restart();
    expect(server.pid).not.toBe(pid);
    expect(await client.get('key')).toBeNull();
    expect(await client.config('GET', 'maxmemory')).toEqual(['maxmemory', '8388608']);
    client.disconnect();
    await server.stop();
  });

  it('answers nothing while it is paused, and stops all the same', async () => {
    const server = await startRedis();
    const client = new Redis(server.url);
    await client.ping();
    server.pause();
    let isAnswered = false;
    const answer = client.ping().then(() => {
      isAnswered = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(isAnswered).toBe(false);
    server.resume();
    await answer;
    server.pause();
    client.disconnect();
    await server.stop();
  });

  it('The error of a server that does not start has the server’s message', async () => {
    await expect(startRedis({ args: ['--no-such-option', '1'] })).rejects.toThrow('no-such-option');
  });
});

describe('scripts', () => {
  const dir = mkdtempSync(join(tmpdir(), 'reenlock-scripts-'));
  afterAll(() => rmSync(dir, { recursive: true }));
  const script = (name: string, source: string) => {
    const file = join(dir, name);
    writeFileSync(file, source);
    return file;
  };

  it('run to their end and give code and output', async () => {
    const file = script(
      'run.ts',
      `const n: number = 3; console.log(process.argv[2], process.env.WORD); process.exitCode = n;`,
    );
    expect(await runScript(file, { args: ['a'], env: { WORD: 'b' } })).toEqual({
      code: 3,
      stdout: 'a b\n',
      stderr: '',
    });
  });

  it('that take too long are killed', async () => {
    const file = script('late.ts', 'setInterval(() => {}, 1000);');
    await expect(runScript(file, { timeoutMs: 1_500 })).rejects.toThrow('took longer than 1500 ms');
  });

  it('exchange messages and lines, in any order, until they are stopped', async () => {
    const file = script(
      'talk.ts',
      `process.on('message', (n: number) => { console.log('got', n); process.send?.({ n: n * 2 }); });
       process.send?.('ready'); console.log('first');`,
    );
    const running = startScript(file);
    await running.once((message) => message === 'ready');
    running.send(1);
    running.send(2);
    expect(await running.once<{ n: number }>(({ n }) => n === 4)).toEqual({ n: 4 });
    expect(await running.once<{ n: number }>()).toEqual({ n: 2 });
    const lines: string[] = [];
    for await (const line of running.lines()) if (lines.push(line) === 3) break;
    expect(lines).toEqual(['first', 'got 1', 'got 2']);
    expect((await running.stop()).code).toBeNull();
    await expect(running.once()).rejects.toThrow('ended');
  });
});

describe('the Redis server of the tests', () => {
  const dir = mkdtempSync(join(tmpdir(), 'reenlock-path-'));
  const binary = (folder: string, name: string) => {
    mkdirSync(join(dir, folder), { recursive: true });
    const file = join(dir, folder, name);
    writeFileSync(file, '#!/bin/sh\n', { mode: 0o755 });
    return file;
  };
  const env = { ...process.env };
  beforeEach(() => {
    delete process.env.REDIS_SERVER;
  });
  afterEach(() => {
    process.env = { ...env };
  });
  afterAll(() => rmSync(dir, { recursive: true }));

  it('is the one that REDIS_SERVER names, else redis-server on the PATH, else valkey-server', () => {
    const valkey = binary('valkey', 'valkey-server');
    const redis = binary('redis', 'redis-server');
    process.env.PATH = join(dir, 'valkey');
    expect(redisBinary()).toBe(valkey);
    process.env.PATH += delimiter + join(dir, 'redis');
    expect(redisBinary()).toBe(redis);
    process.env.REDIS_SERVER = valkey;
    expect(redisBinary()).toBe(valkey);
  });

  it('is never done without: one message names all ways to get one', () => {
    const ways = /redis-server or valkey-server on the PATH.*REDIS_SERVER.*as root on a Debian-like system/;
    process.env.REDIS_SERVER = join(dir, 'none');
    expect(redisBinary).toThrow(ways);
    delete process.env.REDIS_SERVER;
    process.env.PATH = dir;
    const getuid = jest.spyOn(process, 'getuid').mockReturnValue(1000);
    expect(redisBinary).toThrow(ways);
    getuid.mockRestore();
  });
});

describe('The order in which files are tested', () => {
  it('The files that are tested first are there', () => {
    expect(longest.filter((path) => !existsSync(join(__dirname, '../..', path)))).toEqual([]);
  });
});
