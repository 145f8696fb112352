/**
 * A balance behind HTTP: GET answers it, PUT sets it. Each is atomic, and the two together are not: that is what the lock
 * is for. One that names a fence below the greatest so far is refused.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

let balance = 0;
let greatest = 0;

const server = createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request) body += chunk;
  const fence = new URL(request.url as string, 'http://ledger').searchParams.get('fence');
  if (fence !== null && Number(fence) < greatest) {
    response.writeHead(409).end();
    return;
  }
  if (fence !== null) greatest = Number(fence);
  if (request.method === 'PUT') balance = Number(body);
  response.end(String(balance));
});
server.listen(0, '127.0.0.1', () => {
  process.send?.({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});
process.once('disconnect', () => {
  server.close();
  server.closeAllConnections();
});
