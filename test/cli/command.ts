import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { createLocks, type LockStore, type Locks, lock, runInTrace } from 'reenlock';
import { RedisStore } from 'reenlock/redis';
import { createConsumer, packPackage } from '../package/packed.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';

/** The processes that a test has started. They end with it. */
export const running: ChildProcess[] = [];

/** The Redis server of the file, from `useCommand` on. */
export let redis: RedisServer;

let consumer: ReturnType<typeof createConsumer>;

/** Installs the published package and starts a Redis server for the tests of a `describe`. */
export function useCommand(): void {
  afterEach(stopRunning);
  beforeAll(async () => {
    consumer = createConsumer(packPackage());
    redis = await startRedis();
  });
  afterAll(async () => {
    consumer?.remove();
    await redis?.stop();
  });
}

export async function stopRunning(): Promise<void> {
  await Promise.all(running.splice(0).map(stop));
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'close');
}

/** The command, as `npx reenlock` starts it. */
export function start(env: Record<string, string>, ...args: string[]): ChildProcess {
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

/** Starts the board; resolves with the address that it prints. */
export async function startBoard(...args: string[]): Promise<{ child: ChildProcess; address: URL }> {
  const child = start({}, 'board', ...args);
  return { child, address: await addressOf(child) };
}

export async function addressOf(child: ChildProcess): Promise<URL> {
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    if (line.startsWith('http://')) return new URL(line);
  }
  throw new Error('The command ended without an address');
}

/** While somebody holds `order:42` in the store at the server. */
export async function whileHeld<T>(work: (locks: Locks) => Promise<T>): Promise<T> {
  const client = new Redis(redis.url);
  try {
    return await whileHeldIn(new RedisStore({ client }), work);
  } finally {
    client.disconnect();
  }
}

export async function whileHeldIn<T>(store: LockStore, work: (locks: Locks) => Promise<T>): Promise<T> {
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
