import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Redis } from 'ioredis';
import { freePort } from './service-process.ts';

export interface OpenRedis {
  readonly url: string;
  /** Ends the server, if it is one of our own. */
  close(): Promise<void>;
}

/** The Redis at `REDIS_URL`; without one, a server of our own, in memory. Throws, saying what is missing. */
export async function openRedis(): Promise<OpenRedis> {
  const named = process.env.REDIS_URL;
  if (named) {
    await answering(named, 1).catch((cause: NodeJS.ErrnoException) => {
      throw new Error(`No Redis server answers at REDIS_URL: ${cause.message || cause.code}`);
    });
    return { url: named, close: async () => {} };
  }
  const port = await freePort();
  const child = await startServer(port);
  const close = async (): Promise<void> => {
    child.kill();
    await once(child, 'exit');
  };
  const url = `redis://127.0.0.1:${port}`;
  await answering(url, 50).catch(async (error: Error) => {
    await close();
    throw error;
  });
  return { url, close };
}

async function startServer(port: number): Promise<ChildProcess> {
  const options = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const child = spawn(process.env.REDIS_SERVER ?? 'redis-server', options, { stdio: 'ignore' });
  process.once('exit', () => child.kill());
  await once(child, 'spawn').catch(() => {
    throw new Error('Two services need a Redis between them: set REDIS_URL, or put redis-server on the PATH');
  });
  return child;
}

async function answering(url: string, tries: number): Promise<void> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: (times) => (times < tries ? 100 : null) });
  let cause: Error | undefined;
  client.on('error', (error: Error) => {
    cause = error;
  });
  try {
    await client.ping();
  } catch (error) {
    throw cause ?? error;
  } finally {
    client.disconnect();
  }
}
