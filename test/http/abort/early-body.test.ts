import { gate } from '../../support/gate.ts';
import { Contest } from '../../support/http/contest.ts';
import { describeFrameworks } from '../../support/http/frameworks.ts';
import { clientLeaves, ServerStage } from '../../support/http/server-stage.ts';
import { readers } from './leaving-ways.ts';

/** Each of them makes Node take the connection from the request: `req.socket` is null from then on. */
const ways = [
  'leaves its loop',
  'throws in its loop',
  'has a pipeline into a full disk',
  'takes one chunk',
  'cancels a web stream of it',
  'sends it on to a server that refuses it',
];

/** Sends the head of a request, and the first of two halves of its body. */
async function upload(stage: ServerStage) {
  const headers = ['Content-Length: 8'];
  const client = (await stage.connect()).request({ path: '/first', trace: 'first', method: 'POST', headers });
  client.socket.write('half');
  return client;
}

describeFrameworks('A handler that stops reading the body of its request', (framework) => {
  it.each(ways)(
    '[early-body-01] A handler keeps its hold when the client disconnects, until its own end, if it read the body so: %s',
    async (way) => {
      const work = gate();
      const contest = await Contest.opened(framework, {}, upload, async (call, stage) => {
        const { socket } = call.req;
        await Promise.resolve(readers[way]?.(call.req)).catch(() => {});
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
