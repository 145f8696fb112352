import { type IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { createLocks, type Locks, MemoryStore } from 'reenlock';
import { lockOn, traceContext } from 'reenlock/fastify';
import { gate } from '../support/gate.ts';

type Upgraded = FastifyRequest & { ws?: boolean };

/** Does with an upgrade what @fastify/websocket does: the route runs with a response of its own, and takes the connection over. */
function takeUpgrades(app: FastifyInstance): void {
  app.decorateRequest('ws', false as never);
  app.server.on('upgrade', (req: IncomingMessage, socket: Socket) => {
    socket.on('error', () => {}).on('end', () => socket.end());
    socket.resume();
    const res = new ServerResponse(req);
    res.assignSocket(socket);
    app.routing(req, res);
  });
  app.addHook('onRequest', (request, _reply, done) => {
    (request as Upgraded).ws = request.raw.headers.upgrade === 'websocket';
    done();
  });
}

describe('A guard on the route of a WebSocket', () => {
  let locks: Locks;
  let store: MemoryStore;
  let app: FastifyInstance;
  let socket: Socket;
  const journal: string[] = [];

  /** Sends a request to a guarded route, and resolves when its handler has begun, and done `work`. */
  async function open(
    work: (request: FastifyRequest, reply: FastifyReply) => unknown,
    { headers = 'Connection: Upgrade\r\nUpgrade: websocket\r\n', takesOver = true } = {},
  ): Promise<void> {
    const taken = gate();
    takeUpgrades(app);
    await app.register(traceContext({ locks }));
    app.get('/', { preHandler: lockOn('k') }, (request, reply) => {
      journal.push('in');
      work(request, reply);
      if (takesOver) {
        reply.hijack();
        request.raw.socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n');
      }
      taken.open();
    });
    await app.listen({ port: 0, host: '127.0.0.1' });
    socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
    socket.on('error', () => {}).resume();
    socket.write(`GET / HTTP/1.1\r\nHost: x\r\n${headers}\r\n`);
    await taken;
  }

  beforeEach(() => {
    journal.length = 0;
    store = new MemoryStore();
    locks = createLocks({ store });
    for (const event of ['released', 'lost'] as const) locks.on(event, () => journal.push(event));
    app = fastify();
  });
  afterEach(async () => {
    socket.destroy();
    await app.close();
    await locks.close({ drainMs: 0 });
  });

  it.each([
    ['the client ends it', () => socket.end()],
    ['the client resets it', () => socket.resetAndDestroy()],
  ])(
    '[websocket-01] The route of a WebSocket keeps its lock while the socket lasts, and releases it when %s',
    async (_, leave) => {
      await open(() => {});
      expect((await store.inspect('k')).holds).toHaveLength(1);
      const released = new Promise((resolve) => locks.on('released', resolve));
      leave();
      await released;
      expect(journal).toEqual(['in', 'released']);
    },
  );

  it('[websocket-02] The route of a WebSocket releases its lock when other code of the server destroys the socket, as after an error of its handler', async () => {
    let own: Socket | undefined;
    await open((request) => {
      own = request.raw.socket;
    });
    const released = new Promise((resolve) => locks.on('released', resolve));
    own?.destroy();
    await released;
    expect(journal).toEqual(['in', 'released']);
  });

  it.each([
    ['A route of a WebSocket whose socket is not yet taken over', { takesOver: false }],
    ['A handler that hijacks its reply without a WebSocket', { headers: '' }],
  ])('%s keeps its lock if the client disconnects, until it ends the response', async (_, how) => {
    let reply: FastifyReply | undefined;
    const gone = gate();
    await open((request, own) => {
      reply = own;
      request.raw.socket.once('close', () => gone.open());
    }, how);
    socket.resetAndDestroy();
    await gone;
    await new Promise(setImmediate);
    expect((await store.inspect('k')).holds).toHaveLength(1);
    const released = new Promise((resolve) => locks.on('released', resolve));
    reply?.raw.end();
    await released;
    expect(journal).toEqual(['in', 'released']);
  });
});
