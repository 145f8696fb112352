import { constants, type ServerHttp2Stream } from 'node:http2';
import { isTrusted } from '../../../src/http/trust.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { gate } from '../../support/gate.ts';
import { Contest } from '../../support/http/contest.ts';
import type { Call } from '../../support/http/frameworks.ts';
import { answering, hangups, onHttp2, stages, startHttp2 } from '../../support/http/http2-stages.ts';
import { clientLeaves, ServerStage } from '../../support/http/server-stage.ts';

const { NGHTTP2_CANCEL } = constants;

const streamOf = (call: Call): ServerHttp2Stream => (call.req as unknown as { stream: ServerHttp2Stream }).stream;

describe.each(stages)('A stream that is gone, on %s (%s)', (protocol, _, framework) => {
  afterEach(ServerStage.endAll);

  const ofMethods = hangups.flatMap(([name, hangUp]) =>
    ['GET', 'HEAD'].map((method) => [name, method, hangUp] as const),
  );

  it.each(ofMethods)(
    '[http2-gone-01] A client that hangs up by %s leaves the queue, and its handler never runs (%s)',
    async (_, method, hangUp) => {
      const work = gate();
      const stage = await answering(framework, protocol, work);
      const first = stage.visit('/x', 'first');
      await stage.until('first in');
      const gone = (await stage.connectHttp2()).request({ path: '/x', trace: 'gone', method });
      await stage.until('waiting gone k');
      const third = stage.visit('/x', 'third');
      await stage.until('waiting third k');
      hangUp(gone);
      await stage.until('aborted gone k');
      await stage.visit('/nowhere', 'passer-by');
      expect([await stage.holder('k'), await stage.waiters('k')]).toEqual(['first', ['third']]);
      work.open();
      await Promise.all([first, third]);
      expect(stage.journal).not.toContain('gone in');
    },
  );

  it('[http2-gone-02] A request whose stream was gone before traceContext saw it gets no lock', async () => {
    const slow = gate();
    const stage = await ServerStage.start(framework, { bare: true, protocol }, (app, stage) => {
      const wait = framework.middleware(async (call, next) => {
        call.res.once('close', () => stage.note('gone'));
        stage.note('comes');
        await slow;
        return next();
      });
      app.route('/late', wait, framework.traceContext({ locks: stage.locks }), framework.lockOn('k'), () =>
        stage.note('late in'),
      );
      app.route('/before', framework.traceContext({ locks: stage.locks }), framework.lockOn('warm'), (call) =>
        call.send('subscribed'),
      );
    });
    // From here on a free key is had in the turn of its guard.
    await stage.visit('/before', 'before');
    const late = (await stage.connectHttp2()).request({ path: '/late', trace: 'late' });
    await stage.until('comes');
    late.stream.close(NGHTTP2_CANCEL);
    await stage.until('gone');
    slow.open();
    await stage.visit('/nowhere', 'passer-by');
    await stage.free('k');
    // Its trace is its own: there was nobody left to trust.
    const aborted = expect.stringMatching(/^aborted [0-9a-f]{32} k$/);
    expect(stage.journal.filter((line) => !line.endsWith(' warm'))).toEqual(['comes', 'gone', aborted]);
  });

  it.each<[string, (call: Call) => unknown]>([
    ['its stream', (call) => streamOf(call).destroy()],
    ['its session', (call) => streamOf(call).session?.destroy()],
  ])(
    `[http2-gone-03] A handler that destroys %s itself ${framework.endsResponses ? 'ends its hold' : 'loses its hold after abortGraceMs'}`,
    async (_, destroy) => {
      const clock = new ManualClock();
      const contest = await startHttp2(
        framework,
        protocol,
        { locks: { clock, waitMs: Number.POSITIVE_INFINITY } },
        (call) => void destroy(call),
      );
      contest.go();
      await contest.first.closed;
      if (framework.endsResponses) await contest.expectHandedOn();
      else await contest.expectHeldForGrace(clock);
    },
  );
});

describe.each(stages)('A response that is written in parts, on %s (%s)', (protocol, _, framework) => {
  afterEach(ServerStage.endAll);

  it.each(hangups)(
    '[http2-gone-05] A handler that goes on writing after its client has disconnected by %s keeps its hold until its end',
    async (_, hangUp) => {
      const work = gate();
      const contest = await startHttp2(framework, protocol, async (call, stage) => {
        call.detach();
        const closed = new Promise((resolve) => call.res.once('close', resolve));
        call.res.write('part');
        stage.note('first writes');
        await closed;
        call.res.on('error', () => {});
        // Node destroys the response at this.
        call.res.write('for nobody');
        stage.note('first has written');
        await work;
        call.res.end();
      });
      contest.go();
      await contest.stage.until('first writes');
      hangUp(contest.first);
      await contest.stage.until('first has written');
      await contest.expectHeldUntil(work);
    },
  );
});

describe.each(stages)('Trust on %s (%s)', (protocol, _, framework) => {
  afterEach(ServerStage.endAll);

  it('Trust uses the address of the connection, and adopts nothing once the connection is gone', async () => {
    const seen: boolean[] = [];
    const contest = await startHttp2(framework, protocol, (call) => {
      seen.push(isTrusted(call.req, call.req.socket, 'internal'));
      streamOf(call).session?.destroy();
      seen.push(isTrusted(call.req, call.req.socket, 'internal'));
      call.res.once('close', () => seen.push(isTrusted(call.req, call.req.socket, 'internal')));
      call.send('to nobody');
    });
    contest.go();
    await contest.first.closed;
    await contest.expectHandedOn();
    expect(seen).toEqual([true, false, false]);
  });
});

describe.each(onHttp2)('A client of HTTP/1.1 on a server of HTTP/2 ($name)', (framework) => {
  afterEach(ServerStage.endAll);

  it.each(['FIN', 'RST'] as const)(
    '[http2-gone-04] A client of HTTP/1.1 that hangs up (%s) leaves the hold to its handler',
    async (how) => {
      const work = gate();
      const contest = await Contest.start(
        framework,
        { locks: { protocol: 'HTTP/2 over TLS' } },
        async (call, stage) => {
          await clientLeaves(stage);
          await work;
          call.send('late');
        },
      );
      contest.go();
      await contest.expectStillHeld();
      await contest.first.hangUp(how);
      await contest.stage.until('first hears');
      await contest.expectHeldUntil(work);
    },
  );
});
