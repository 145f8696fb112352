import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { Pool } from 'pg';
import { PostgresCas } from 'reenlock/redis';
import { openStore } from '../../../src/cli/store.ts';
import { PostgresStore } from '../../../src/stores/postgres/postgres-store.ts';

/** A message of the server: its kind, its length and its contents. */
function message(kind: string, contents: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(kind, 'latin1');
  head.writeInt32BE(contents.length + 4, 1);
  return Buffer.concat([head, contents]);
}

/** "All is well, go ahead", and in the same packet: "this connection ends, by order of the administrator". */
const welcomeAndEnd = Buffer.concat([
  message('R', Buffer.alloc(4)),
  message('Z', Buffer.from('I')),
  message('E', Buffer.from('SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0')),
]);

describe('A server that ends each connection as soon as it has opened', () => {
  let server: Server;
  let url: string;
  let pool: Pool;
  const sockets = new Set<Socket>();
  beforeEach(async () => {
    server = createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => {}); // The client may be gone first.
      socket.on('close', () => sockets.delete(socket));
      socket.once('data', () => socket.end(welcomeAndEnd));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    url = `postgres://postgres@127.0.0.1:${(server.address() as AddressInfo).port}/postgres`;
    pool = new Pool({ connectionString: url });
    pool.on('error', () => {}); // As every application must.
  });
  afterEach(async () => {
    await pool.end();
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  });

  // An event `error` without a listener would end the process, and this test with it.
  it.each<[string, () => Promise<unknown>]>([
    ['a call', () => new PostgresStore({ pool }).inspect('order:42')],
    ['a call of `PostgresCas`', () => new PostgresCas({ pool }).read('order:42')],
    ['`migrate`', () => new PostgresStore({ pool }).migrate()],
    ['`subscribe`', () => new PostgresStore({ pool }).subscribe('process', () => {})],
  ])('It is the error of %s, and the process goes on', async (_, call) => {
    await expect(call()).rejects.toMatchObject({ code: 'ERR_LOCK_STORE' });
  });

  it('It is the error of the command that opens a board, and the process goes on', async () => {
    const store = openStore({ url: new URL(url), prefix: undefined } as Parameters<typeof openStore>[0]);
    await expect(store.connect()).rejects.toThrow('terminating connection');
    await store.close();
  });
});
