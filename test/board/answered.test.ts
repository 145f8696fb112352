import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import fastify from 'fastify';
import { Hono } from 'hono';
import { createLocks, type Locks, lock } from 'reenlock';
import { lockBoard as forFastify } from 'reenlock/fastify';
import { lockBoard as forHono } from 'reenlock/hono';
import request from 'supertest';
import { type Gate, gate } from '../support/gate.ts';
import { BoardServer, boardHosts } from '../support/http/boards.ts';
import { RawClient } from '../support/http/raw-client.ts';
import { startJob } from '../support/stores/set-up.ts';
import { until } from '../support/until.ts';

const ann = { name: 'ann', mayForceRelease: true };

let locks: Locks;
let board: BoardServer;

/** Called within each suite: the look for leaks comes after its hooks. */
function setUp(): void {
  beforeEach(() => {
    locks = createLocks();
  });
  afterEach(async () => {
    await board.stop();
    await locks.close();
  });
}

/** Fails if a viewer is left on a board that has room for one. */
async function expectNoViewer(): Promise<void> {
  const stream = await board.stream();
  expect(stream.response.statusCode).toBe(200);
}

describe.each(boardHosts)('A request for the board whose `authorize` is pending ($name)', ({ listener }) => {
  setUp();
  /** The first requests wait at the gate; later ones pass. */
  let answer: Gate;
  let isSlow: boolean;
  let asked: Promise<void>;
  let responses: ServerResponse[];

  async function start(authorize: () => unknown = () => ann): Promise<void> {
    const begun = gate();
    answer = gate();
    asked = begun;
    isSlow = true;
    responses = [];
    const slowly = async () => {
      begun.open();
      if (isSlow) await answer;
      return authorize();
    };
    const keep = ({ url }: IncomingMessage, res: ServerResponse, next: () => void) => {
      responses.push(res);
      if (url !== '/hang') next();
    };
    board = await BoardServer.start(listener({ locks, authorize: slowly, maxViewers: 1 }, keep));
  }

  function goOn(): void {
    isSlow = false;
    answer.open();
  }

  it.each(['/', '/lock?id=a', '/stream'])(
    'A request for %s to which other code responds meanwhile keeps that response, and leaves no viewer',
    async (path) => {
      await start();
      const replied = request(board.server).get(`/ops/locks${path}`).then();
      await asked;
      responses[0]?.writeHead(503).end('slow');
      const { status, text } = await replied;
      goOn();
      await expectNoViewer();
      expect([status, text]).toEqual([503, 'slow']);
    },
  );

  it.each(['/', '/stream'])(
    'A response to %s that other code has begun meanwhile is left to that code',
    async (path) => {
      await start();
      const replied = request(board.server).get(`/ops/locks${path}`).then();
      await asked;
      responses[0]?.writeHead(200, { 'Content-Type': 'text/plain' }).write('one, ');
      goOn();
      await expectNoViewer();
      responses[0]?.end('two');
      const { text } = await replied;
      expect(text).toBe('one, two');
    },
  );

  it('A stream whose client disconnects meanwhile is not opened', async () => {
    await start();
    const client = await RawClient.connect(board.port);
    client.request({ path: '/ops/locks/stream' });
    await asked;
    const [res] = responses;
    client.socket.destroy();
    if (!res?.destroyed) await once(res as ServerResponse, 'close');
    goOn();
    await expectNoViewer();
  });

  it('A stream that waits behind another response ends with its connection', async () => {
    await start();
    const client = await RawClient.connect(board.port);
    client.request({ path: '/hang' }, { path: '/ops/locks/stream' });
    await asked;
    goOn();
    expect((await board.stream()).response.statusCode).toBe(503);
    client.socket.destroy();
    await until(async () => (await board.stream()).response.statusCode === 200);
  });

  it('A force release to which other code responds meanwhile does not happen', async () => {
    const job = startJob(locks, 'holder');
    const held = await job.in(() => lock.acquire('k'));
    await start();
    const replied = request(board.server)
      .post('/ops/locks/release')
      .set({ 'Sec-Fetch-Site': 'same-origin' })
      .send({ id: 'k', fence: held.fence, reason: 'stuck' })
      .then();
    await asked;
    responses[0]?.writeHead(503).end('slow');
    expect((await replied).status).toBe(503);
    goOn();
    await expectNoViewer();
    expect(held.isHeld()).toBe(true);
    await job.end();
  });

  it('An `authorize` that fails after other code has responded is reported as a warning event', async () => {
    const warned = new Promise((resolve) => locks.on('warning', resolve));
    let cause: Error | undefined = new Error('no session');
    await start(() => {
      if (cause !== undefined) throw cause;
      return ann;
    });
    const replied = request(board.server).get('/ops/locks/').then();
    await asked;
    responses[0]?.writeHead(503).end('slow');
    expect((await replied).text).toBe('slow');
    goOn();
    expect(await warned).toMatchObject({ code: 'LOCK_BOARD_AUTHORIZE', cause });
    cause = undefined;
    await expectNoViewer();
  });
});

describe('A stream that is replaced by another response', () => {
  setUp();

  it('A stream that a hook of Fastify replaces leaves no viewer', async () => {
    let isReplaced = true;
    const app = fastify();
    app.addHook('onSend', async (_request, _reply, payload) => (isReplaced ? 'other' : payload));
    app.register(forFastify({ locks, authorize: () => ann, maxViewers: 1 }), { prefix: '/ops/locks' });
    await app.ready();
    board = await BoardServer.start((req, res) => app.routing(req, res));
    expect((await fetch(board.url('/ops/locks/stream'))).status).toBe(200);
    isReplaced = false;
    await until(async () => (await board.stream()).response.statusCode === 200);
  });

  it('A stream that middleware of Hono replaces leaves no viewer', async () => {
    let isReplaced = true;
    const app = new Hono();
    app.use(async (c, next) => {
      await next();
      if (isReplaced) c.res = new Response('other');
    });
    app.use('/ops/locks/*', forHono({ locks, authorize: () => ann, maxViewers: 1 }));
    board = await BoardServer.start(getRequestListener(app.fetch, { overrideGlobalObjects: false }));
    expect(await (await fetch(board.url('/ops/locks/stream'))).text()).toBe('other');
    isReplaced = false;
    await until(async () => (await board.stream()).response.statusCode === 200);
  });
});
