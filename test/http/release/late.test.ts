import { AsyncResource } from 'node:async_hooks';
import { PassThrough, pipeline } from 'node:stream';
import compression from 'compression';
import { currentTrace } from 'reenlock';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { Contest } from '../../support/http/contest.ts';
import { type Call, describeStyles } from '../../support/http/frameworks.ts';
import { clientLeaves } from '../../support/http/server-stage.ts';

/** More than the buffers of a loopback connection take. */
const largeBytes = 32 * 2 ** 20;
const waitMs = Number.POSITIVE_INFINITY;
/** The async context of a library that serves all requests, such as a pool of connections. */
const outside = new AsyncResource('test');

describeStyles('An answer that nothing ends', (framework) => {
  const unended: [string, (call: Call) => unknown][] = [
    ['of server-sent events by res.write', (call) => call.res.write('data: one\n\n')],
    ['of a generator by pipeline', (call) => void pipeline(endlessly, call.res, () => {})],
  ];

  it.each(unended)(
    '[late-01] A response that never ends, %s, keeps the lock until abortGraceMs after its client has disconnected',
    async (_, answer) => {
      const clock = new ManualClock();
      const contest = await Contest.start(framework, { locks: { clock, waitMs } }, (call) => {
        call.detach();
        answer(call);
      });
      contest.go();
      await contest.first.receives(/\r\n\r\n/);
      contest.first.pause();
      await clock.advance(60_000);
      await contest.expectStillHeld();
      await contest.first.hangUp('RST');
      await contest.expectHeldForGrace(clock);
      contest.stage.expectOrder('lost first k', 'second in');
    },
  );

  it('[late-02] A response whose source fails unnoticed keeps the lock until its client has disconnected', async () => {
    const clock = new ManualClock();
    const source = new PassThrough().on('error', () => {});
    const contest = await Contest.start(framework, { locks: { clock, waitMs } }, (call) => {
      call.detach();
      source.pipe(call.res);
    });
    contest.go();
    source.write('one,');
    await contest.first.receives(/one,/);
    source.destroy(new Error('the source failed'));
    await clock.advance(60_000);
    await contest.expectStillHeld();
    await contest.first.hangUp();
    await contest.expectHandedOn();
    expect(contest.stage.journal).not.toContain('lost first k');
  });

  it('[late-03] Server-sent events release the lock at once if the trace’s signal ends them', async () => {
    const contest = await Contest.start(framework, (call) => {
      call.detach();
      call.res.write('data: one\n\n');
      currentTrace()?.signal.addEventListener('abort', () => call.res.end());
    });
    contest.go();
    await contest.first.receives(/data: one/);
    await contest.expectStillHeld();
    await contest.first.hangUp();
    await contest.expectHandedOn();
    expect(contest.stage.journal).not.toContain('lost first k');
  });

  if (framework.style === 'callback')
    it('[late-06] A handler that destroys its connection in a callback without its async context keeps the lock until abortGraceMs after that', async () => {
      const clock = new ManualClock();
      const contest = await Contest.start(framework, { locks: { clock, waitMs } }, async (call, stage) => {
        outside.runInAsyncScope(() => call.req.socket.destroy());
        await clientLeaves(stage);
      });
      contest.go();
      await contest.stage.until('first hears');
      await contest.expectHeldForGrace(clock);
    });

  // Fastify destroys such a response, and ends it.
  if (framework.style === 'callback' && framework.adapter !== 'fastify') {
    it('[late-04] A response that fails in the middle when its client has disconnected keeps the lock until abortGraceMs after that', async () => {
      const clock = new ManualClock();
      const contest = await Contest.start(framework, { locks: { clock, waitMs } }, async (call, stage) => {
        call.res.write('half');
        await clientLeaves(stage);
        call.fail(new Error('too late'));
        stage.note('first fails');
      });
      contest.go();
      await contest.first.receives(/half/);
      await contest.first.hangUp();
      await contest.stage.until('first fails');
      await contest.expectHeldForGrace(clock);
    });

    it('[late-05] A response whose compression never ends when its client disconnects keeps the lock until abortGraceMs after that', async () => {
      const clock = new ManualClock();
      const compress = compression({ level: 0 });
      const contest = await Contest.opened(
        framework,
        { locks: { clock, waitMs } },
        async (stage) =>
          (await stage.connect()).request({ path: '/first', trace: 'first', headers: ['Accept-Encoding: gzip'] }),
        (call, stage) => {
          const { req, res } = call;
          compress(req as Parameters<typeof compress>[0], res as Parameters<typeof compress>[1], () => {
            res.on('close', () => stage.note('first is cut off'));
            call.send('x'.repeat(largeBytes));
          });
        },
      );
      contest.go();
      await contest.first.receives(/Content-Encoding: gzip/);
      contest.first.pause();
      await contest.expectStillHeld();
      await contest.first.hangUp('RST');
      await contest.stage.until('first is cut off');
      await contest.expectHeldForGrace(clock);
    });
  }
});

const dots = Buffer.alloc(64 * 1024, '.');

async function* endlessly(): AsyncGenerator<Buffer> {
  while (true) yield dots;
}
