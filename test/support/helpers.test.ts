import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { longest } from './jest/longest.json';
import { runScript } from './processes/processes.ts';
import { redisBinary } from './redis/binary.ts';
import { startRedis } from './redis/server.ts';

it('The error of a server that does not start has the server’s message', async () => {
  await expect(startRedis({ args: ['--no-such-option', '1'] })).rejects.toThrow('no-such-option');
});

it('A script that takes too long is killed', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'reenlock-scripts-'));
  const file = join(dir, 'late.ts');
  writeFileSync(file, 'setInterval(() => {}, 1000);');
  await expect(runScript(file, { timeoutMs: 1_500 })).rejects.toThrow('took longer than 1500 ms');
  rmSync(dir, { recursive: true });
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
