import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Listens on `PORT` (default 3000; 0 finds a free one) and says so. */
export async function listen(app: RequestListener): Promise<Server> {
  const server = createServer(app).listen(Number(process.env.PORT ?? 3000), '127.0.0.1');
  await once(server, 'listening');
  console.log(`Listening on http://127.0.0.1:${portOf(server)}`);
  return server;
}

export function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}
