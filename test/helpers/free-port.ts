import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const attempts = 5;

/** A loopback port that nobody listens on, `most` at most: for servers that must know each other's before they listen. */
export async function freePort(most = 65_535): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port > most ? freePort(most) : port;
}

/** Starts a server on a free port; again on another one, where somebody took that between the look and the start. */
export async function onFreePort<T>(start: (port: number) => Promise<T>, most?: number): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(await freePort(most));
    } catch (error) {
      if (attempt === attempts || !String(error).includes('Address already in use')) throw error;
    }
  }
}
