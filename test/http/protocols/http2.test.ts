import { constants, type Http2ServerResponse, type ServerHttp2Stream } from 'node:http2';
import { pipeline, Readable } from 'node:stream';
import { currentTrace, lock } from 'reenlock';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { gate } from '../../support/gate.ts';
import type { ContestOptions, FirstHandler } from '../../support/http/contest.ts';
import type { Call } from '../../support/http/frameworks.ts';
import { answering, hangups, stages, startHttp2 } from '../../support/http/http2-stages.ts';
import { clientLeaves, ServerStage } from '../../support/http/server-stage.ts';
import type { OptionsFirst } from '../../support/options-first.ts';

const { NGHTTP2_CANCEL } = constants;

describe.each(stages)('%s (%s)', (protocol, _, framework) => {
  afterEach(ServerStage.endAll);

  const start = (...how: OptionsFirst<ContestOptions, FirstHandler>) => startHttp2(framework, protocol, ...how);

  it('[http2-01] The lock goes to the next request when the handler responds, not earlier', async () => {
    const work = gate();
    const contest = await start(async (call, stage) => {
      stage.note('first works');
      await work;
      stage.note('first answers');
      call.send('first');
    });
    contest.go();
    await contest.stage.until('first works');
    await contest.expectHeldUntil(work);
    await contest.first.receives(/first$/);
    contest.stage.expectOrder('first answers', 'released first k', 'second in');
  });

  it('[http2-02] Requests for one key on one connection get their responses one after the other', async () => {
    const stage = await answering(framework, protocol);
    const client = await stage.connectHttp2();
    const answers = ['one', 'two', 'three'].map((trace) => client.request({ path: '/x', trace }));
    await Promise.all(answers.map(({ closed }) => closed));
    expect(answers.map(({ received }) => received)).toEqual(['one', 'two', 'three']);
    await stage.free('k');
  });

  it('The end of one request does not end another on the same connection', async () => {
    const work = gate();
    const stage = await ServerStage.start(framework, { protocol }, (app, stage) =>
      app
        .route('/quick', (call) => call.send('quick'))
        .route('/slow', framework.lockOn('k'), async (call) => {
          stage.note('slow in');
          await work;
          call.send(`told to stop: ${currentTrace()?.signal.aborted}`);
        }),
    );
    const client = await stage.connectHttp2();
    const quick = client.request({ path: '/quick', trace: 'quick' });
    const slow = client.request({ path: '/slow', trace: 'slow' });
    await Promise.all([quick.closed, stage.until('slow in')]);
    await stage.visit('/nowhere', 'passer-by');
    expect(await stage.holder('k')).toBe('slow');
    work.open();
    await slow.closed;
    expect(slow.received).toBe('told to stop: false');
    await stage.free('k');
  });

  it.each(hangups)(
    '[http2-03] A handler whose client hangs up by %s keeps its hold, gets the signal, and may acquire until its late response',
    async (_, hangUp) => {
      const clock = new ManualClock();
      const work = gate();
      const contest = await start({ locks: { clock, waitMs: Number.POSITIVE_INFINITY } }, async (call, stage) => {
        await clientLeaves(stage);
        await work;
        await lock.acquire('more');
        stage.note('first answers');
        call.send('late');
      });
      contest.go();
      await contest.expectStillHeld();
      hangUp(contest.first);
      await contest.stage.until('first hears');
      await clock.advance(25_000);
      await contest.expectHeldUntil(work);
      await contest.stage.free('more');
      contest.stage.expectOrder('first hears', 'renewed first k', 'first answers', 'released first k', 'second in');
    },
  );

  it(`[http2-04] A handler that returns without a response after its client has disconnected ${framework.endsResponses ? 'ends its hold' : 'loses its hold after abortGraceMs'}`, async () => {
    const clock = new ManualClock();
    const contest = await start({ locks: { clock, waitMs: Number.POSITIVE_INFINITY } }, (_, stage) =>
      clientLeaves(stage),
    );
    contest.go();
    contest.first.stream.close(NGHTTP2_CANCEL);
    await contest.stage.until('first hears');
    if (framework.endsResponses) await contest.expectHandedOn();
    else await contest.expectHeldForGrace(clock);
    expect(contest.stage.count('lost first k')).toBe(framework.endsResponses ? 0 : 1);
  });

  it('[http2-05] A client that only announces that it sends no more requests (GOAWAY) has not left', async () => {
    const work = gate();
    const contest = await start(async (call, stage) => {
      stage.note('first works');
      await work;
      call.send('first');
    });
    contest.go();
    await contest.stage.until('first works');
    contest.first.stream.session?.goaway();
    contest.first.stream.session?.close();
    await contest.expectHeldUntil(work);
    await contest.first.receives(/first$/);
    await contest.first.closed;
  });

  const streams: [string, (call: Call) => unknown][] = [
    ['a stream in the framework’s way', (call) => call.stream(endless())],
    ['pipe', (call) => void endless().pipe(call.res)],
    ['pipeline', (call) => void pipeline(endless(), call.res, () => {})],
  ];

  it.each(streams)('[http2-06] A client that hangs up in the middle of %s releases the lock', async (name, answer) => {
    const contest = await start((call) => {
      if (!name.startsWith('a ')) call.detach();
      answer(call);
    });
    contest.go();
    await contest.first.receives(/./);
    contest.first.stream.pause();
    await contest.expectStillHeld();
    contest.first.stream.close(NGHTTP2_CANCEL);
    await contest.expectHandedOn();
  });

  const pastTheResponse: [string, (stream: ServerHttp2Stream) => void][] = [
    [
      'respond',
      (stream) => {
        stream.respond();
        stream.end('answer');
      },
    ],
    ['respondWithFile', (stream) => stream.respondWithFile(__filename)],
  ];

  it.each(pastTheResponse)(
    '[http2-07] A handler that responds by its stream’s %s releases the lock',
    async (_, answer) => {
      const contest = await start((call) => {
        call.detach();
        answer((call.res as unknown as Http2ServerResponse).stream);
      });
      contest.go();
      await contest.expectHandedOn();
      expect(contest.stage.count('lost first k')).toBe(0);
    },
  );

  it.each([
    ['HEAD', 200],
    ['GET', 204],
    ['GET', 205],
    ['GET', 304],
  ])(
    '[http2-08] A handler that works on after the head of a response without a body keeps the lock: %s, %i',
    async (method, status) => {
      const work = gate();
      const stage = await ServerStage.start(framework, { protocol }, (app, stage) =>
        app.route('/x', framework.lockOn('k'), async (call) => {
          call.detach();
          call.res.writeHead(status);
          await work;
          stage.note('ends');
          call.res.end();
        }),
      );
      await (await stage.connectHttp2()).request({ path: '/x', trace: 'first', method }).closed;
      expect(await stage.holder('k')).toBe('first');
      work.open();
      await stage.free('k');
      stage.expectOrder('ends', 'released first k');
    },
  );

  it.each([
    ['HEAD', 200],
    ['GET', 204],
  ])(
    '[http2-09] A handler that never ends a response without a body loses its hold after abortGraceMs: %s, %i',
    async (method, status) => {
      const clock = new ManualClock();
      const stage = await ServerStage.start(framework, { protocol, clock }, (app) =>
        app.route('/x', framework.lockOn('k'), (call) => {
          call.detach();
          call.res.writeHead(status);
        }),
      );
      await (await stage.connectHttp2()).request({ path: '/x', trace: 'first', method }).closed;
      await stage.visit('/nowhere', 'passer-by');
      await clock.advance(29_000);
      expect(await stage.holder('k')).toBe('first');
      await clock.advance(1_000);
      expect(stage.count('lost first k')).toBe(1);
    },
  );

  it('[http2-10] A slow client keeps the lock with releaseOn `close`, and not without', async () => {
    for (const releaseOn of ['close', 'end'] as const) {
      const contest = await start({ guard: { releaseOn } }, (call) => call.send(Buffer.alloc(2 ** 20, '.')));
      contest.first.stream.pause();
      contest.go();
      // Fastify itself ends a response only after all of it was written.
      if (releaseOn === 'close' || framework.adapter === 'fastify') {
        await contest.expectStillHeld();
        contest.first.stream.resume();
      }
      await contest.expectHandedOn();
      contest.first.stream.resume();
      await contest.first.closed;
    }
  });
});

function endless(): Readable {
  return new Readable({
    read() {
      this.push(Buffer.alloc(64 * 1024, 'x'));
    },
  });
}
