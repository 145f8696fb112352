import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below those that systems give to whoever asks for any port, or connects: they would give away one that is free for a
 * moment. The bus of a Redis Cluster takes the port that is greater by 10,000, which is none of these.
 */
const firstPort = 10_000;
const count = 10_000;
/** Each worker of jest takes ports of its own: the port of a server that is down for a while is not for another suite. */
const workers = 8;
const place = (Number(process.env.JEST_WORKER_ID ?? workers) - 1) % workers;
const perWorker = count / workers;
const attempts = 5;

/** A loopback port that nobody listens on: for servers that must know each other's before they listen, or come back to theirs. */
export async function freePort(): Promise<number> {
  const port = firstPort + place * perWorker + Math.floor(Math.random() * perWorker);
  const server = createServer();
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
  } catch {
    return freePort();
  }
  server.close();
  await once(server, 'close');
  return port;
}

/** Starts a server on a free port; again on another one, where somebody took that between the look and the start. */
export async function onFreePort<T>(start: (port: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(await freePort());
    } catch (error) {
      if (attempt === attempts || !String(error).includes('Address already in use')) throw error;
    }
  }
}
