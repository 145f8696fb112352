import { createServer } from 'node:http';
import { currentTrace, getLock, lock } from 'reenlock';
import { gate } from '../../support/gate.ts';
import { Contest } from '../../support/http/contest.ts';
import { type Call, describeFrameworks } from '../../support/http/frameworks.ts';
import { clientLeaves, ServerStage } from '../../support/http/server-stage.ts';
import { until } from '../../support/until.ts';

/** Sends the head of a request, and the first of two halves of its body. */
async function upload(stage: ServerStage, half = 'half') {
  const client = (await stage.connect()).request({
    path: '/first',
    trace: 'first',
    method: 'POST',
    headers: [`Content-Length: ${2 * half.length}`],
  });
  client.socket.write(half);
  return client;
}

async function readBody(call: Call, stage: ServerStage): Promise<void> {
  for await (const chunk of call.req) stage.note(`first reads ${chunk}`);
}

describeFrameworks('A client that hangs up in the middle of its request', (framework) => {
  it('[abort-midway-01] A handler that reads the body keeps its hold until it has undone its work and failed', async () => {
    const undone = gate();
    const contest = await Contest.opened(framework, {}, upload, async (call, stage) => {
      try {
        await readBody(call, stage);
      } catch (error) {
        stage.note('first is told');
        await undone;
        call.fail(error);
      }
    });
    contest.go();
    await contest.stage.until('first reads half');
    await contest.expectStillHeld();
    await contest.first.hangUp('RST');
    await contest.stage.until('first is told');
    await contest.expectHeldUntil(undone);
  });

  it('[abort-midway-02] A handler that does not read the body keeps its hold until it has responded', async () => {
    const work = gate();
    const contest = await Contest.opened(framework, {}, upload, async (call, stage) => {
      call.req.resume();
      await clientLeaves(stage);
      await work;
      call.send('late');
    });
    contest.go();
    await contest.expectStillHeld();
    await contest.first.hangUp();
    await contest.stage.until('first hears');
    await contest.expectHeldUntil(work);
  });

  it('[abort-midway-06] A handler that learns from a failed write that its client has hung up keeps its hold until its end', async () => {
    const [left, work] = [gate(), gate()];
    const uploadMuch = (stage: ServerStage) => upload(stage, 'x'.repeat(1_000_000));
    const contest = await Contest.opened(framework, {}, uploadMuch, async (call, stage) => {
      call.detach();
      // From then on Node does not read from the connection.
      await until(
        () => call.req.readableLength,
        (length) => length >= call.req.readableHighWaterMark,
      );
      stage.note('first has much to read');
      await left;
      call.res.on('error', () => {});
      // Node destroys the connection in the context of this call.
      call.res.write('part');
      await clientLeaves(stage);
      await work;
      call.res.end();
    });
    contest.go();
    await contest.stage.until('first has much to read');
    await contest.first.hangUp('RST');
    left.open();
    await contest.stage.until('first hears');
    await contest.expectHeldUntil(work);
  });

  it('[abort-midway-03] A handler keeps its hold if the server’s requestTimeout gives up a request whose client has hung up', async () => {
    const work = gate();
    // Long enough for the request to come to its handler on a busy machine.
    const server = createServer({ requestTimeout: 1_000, connectionsCheckingInterval: 10 });
    const contest = await Contest.opened(framework, { locks: { server } }, upload, async (call, stage) => {
      await clientLeaves(stage);
      await work;
      call.send('late');
    });
    contest.go();
    await contest.stage.until('first hears');
    await contest.first.closed;
    await contest.expectHeldUntil(work);
  });
});

describeFrameworks('A client that hangs up, with releaseOn `close`', (framework) => {
  it('[abort-midway-04] With releaseOn `close`, a handler whose client hangs up keeps the lock until it has responded', async () => {
    const work = gate();
    const contest = await Contest.start(framework, { guard: { releaseOn: 'close' } }, async (call, stage) => {
      await clientLeaves(stage);
      await work;
      stage.note('first answers');
      call.send('late');
    });
    contest.go();
    await contest.expectStillHeld();
    await contest.first.hangUp();
    await contest.stage.until('first hears');
    await contest.expectHeldUntil(work);
    contest.stage.expectOrder('first hears', 'first answers', 'released first k', 'second in');
  });
});

describeFrameworks('A client that has hung up before traceContext saw its request', (framework) => {
  it.each(['FIN', 'RST'] as const)(
    '[abort-midway-05] A request whose client has already hung up gets no lock, and its handler never runs (%s)',
    async (how) => {
      const slow = gate();
      const stage = await ServerStage.start(framework, { bare: true }, (app, stage) => {
        app.use(
          framework.middleware(async (call, next) => {
            if (call.req.url === '/late') {
              call.req.socket.once('close', () => stage.note('gone'));
              stage.note('comes');
              await slow;
            }
            return next();
          }),
        );
        app.use(framework.traceContext({ locks: stage.locks }));
        app.route('/late', framework.lockOn('k'), () => stage.note('late in'));
        app.route('/before', framework.lockOn('warm'), (call) => call.send('subscribed'));
      });
      // From here on a free key is had in the turn of its guard.
      await stage.get('/before', 'before');
      const client = (await stage.connect()).request({ path: '/late', trace: 'late' });
      await stage.until('comes');
      await client.hangUp(how);
      await stage.until('gone');
      slow.open();
      await stage.get('/nowhere');
      await stage.free('k');
      // Its trace is its own: there was nobody left to trust.
      const aborted = expect.stringMatching(/^aborted [0-9a-f]{32} k$/);
      expect(stage.journal.filter((line) => !line.endsWith(' warm'))).toEqual(['comes', 'gone', aborted]);
    },
  );

  it.each(['end', 'destroy'] as const)(
    'A lock that a handler acquires after its client has hung up is held until the handler calls res.%s()',
    async (method) => {
      const slow = gate();
      const stage = await ServerStage.start(framework, { bare: true }, (app, stage) => {
        const waits = framework.middleware(async (call, next) => {
          call.detach();
          call.req.socket.once('close', () => stage.note('gone'));
          stage.note('comes');
          await slow;
          return next();
        });
        app.route('/late', waits, framework.traceContext({ locks: stage.locks }), async (call) => {
          await lock.acquire('k');
          stage.note(`told to stop: ${currentTrace()?.signal.aborted}, held: ${getLock('k').isHeld()}`);
          call.res[method]();
        });
      });
      const client = (await stage.connect()).request({ path: '/late', trace: 'late' });
      await stage.until('comes');
      await client.hangUp('RST');
      await stage.until('gone');
      slow.open();
      await stage.until('told to stop: true, held: true');
      await stage.free('k');
      expect(stage.journal.filter((line) => line.startsWith('lost'))).toEqual([]);
    },
  );
});
