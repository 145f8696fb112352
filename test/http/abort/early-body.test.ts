import type { IncomingMessage } from 'node:http';
import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { gate } from '../../support/gate.ts';
import { Contest } from '../../support/http/contest.ts';
import { describeFrameworks } from '../../support/http/frameworks.ts';
import { clientLeaves, ServerStage } from '../../support/http/server-stage.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';

watchLeaks();

type Reader = (req: IncomingMessage) => Promise<unknown>;

/** Each of them makes Node take the connection from the request: `req.socket` is null from then on. */
const readers: readonly (readonly [string, Reader])[] = [
  [
    'leaves its loop over the body',
    async (req) => {
      for await (const _ of req) break;
    },
  ],
  [
    'throws in its loop over the body',
    (req) =>
      refused(async () => {
        for await (const _ of req) throw new Error('too large');
      }),
  ],
  ['has a `pipeline` that fails', (req) => refused(() => pipeline(req, fullDisk()))],
  ['takes one chunk of the body', (req) => req.take(1).toArray()],
  [
    'cancels a web stream of the body',
    async (req) => {
      const reader = Readable.toWeb(req).getReader();
      await reader.read();
      await reader.cancel();
    },
  ],
  [
    'sends the body on to a server that refuses it',
    (req) => refused(() => fetch('http://127.0.0.1:1/', { method: 'POST', body: req, duplex: 'half' } as RequestInit)),
  ],
];

function fullDisk(): Writable {
  return new Writable({ write: (_chunk, _encoding, done) => done(new Error('ENOSPC')) });
}

async function refused(read: () => Promise<unknown>): Promise<void> {
  await expect(read()).rejects.toThrow();
}

/** Sends the head of a request, and the first of two halves of its body. */
async function upload(stage: ServerStage) {
  const headers = ['Content-Length: 8'];
  const client = (await stage.connect()).request({ path: '/first', trace: 'first', method: 'POST', headers });
  client.socket.write('half');
  return client;
}

describeFrameworks('A handler that stops reading the body of its request', (framework) => {
  afterEach(ServerStage.endAll);

  it.each(readers)(
    '[early-body-01] A handler that %s keeps its hold when the client disconnects, until its own end',
    async (_, read) => {
      const work = gate();
      const contest = await Contest.opened(framework, {}, upload, async (call, stage) => {
        const { socket } = call.req;
        await read(call.req);
        stage.note('first has read');
        // The process must live through the listeners of the connection that come after those of the package.
        socket.once('close', () => stage.note('first closed'));
        await clientLeaves(stage);
        await work;
        call.send('late');
      });
      contest.go();
      await contest.stage.until('first has read');
      await contest.expectStillHeld();
      await contest.first.hangUp('RST');
      await contest.stage.until('first hears');
      await contest.stage.until('first closed');
      await contest.expectHeldUntil(work);
    },
  );

  it('[early-body-02] Middleware above `traceContext` that stops reading the body hides neither the client’s leaving nor its address', async () => {
    const work = gate();
    const stage = await ServerStage.start(framework, { bare: true }, (app, stage) => {
      const peek = framework.middleware(async (call, next) => {
        if (call.req.method === 'POST') for await (const _ of call.req) break;
        return next();
      });
      app
        .use(peek)
        .use(framework.traceContext({ locks: stage.locks, trust: 'internal' }))
        .route('/first', framework.lockOn('k'), async (call) => {
          stage.note('first in');
          await clientLeaves(stage);
          await work;
          call.send('late');
        });
    });
    const client = await upload(stage);
    await stage.until('first in');
    await client.hangUp('RST');
    await stage.until('first hears');
    expect(await stage.holder('k')).toBe('first');
    work.open();
    await stage.free('k');
  });
});
