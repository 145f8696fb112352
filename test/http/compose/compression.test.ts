import { randomBytes } from 'node:crypto';
import compression from 'compression';
import type { RequestHandler, Response } from 'express';
import { traceContext } from 'reenlock/express';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import type { App } from '../../support/http/frameworks.ts';
import { describeExpress } from '../../support/http/native.ts';
import type { Hangup } from '../../support/http/raw-client.ts';
import { Rivals, type Work } from '../../support/http/rivals.ts';
import { ServerStage } from '../../support/http/server-stage.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';

watchLeaks();

const gzipped = ['Accept-Encoding: gzip'];
const hangups: Hangup[] = ['FIN', 'RST'];
/** More than the buffers of a loopback connection take, compressed too. */
const large = randomBytes(16 * 2 ** 20);

describeExpress('beside compression', (framework) => {
  afterEach(ServerStage.endAll);

  type Build = (app: App, work: Work, stage: ServerStage) => void;

  /** Answers with what `answer` sends, compressed from the first byte on. */
  function placed(place: 'above' | 'below', answer: (res: Response) => void): Build {
    const compress = compression({ threshold: 0, filter: () => true }) as RequestHandler;
    return (app, work, stage) => {
      const trace = traceContext({ locks: stage.locks });
      app.use(...(place === 'above' ? [compress, trace] : [trace, compress]));
      app.route('/first', framework.lockOn('k'), async (call) => {
        await work();
        answer(call.res as Response);
        stage.note('first answers');
      });
    };
  }

  it.each(['above', 'below'] as const)('mounted %s traceContext, a guard holds until the answer', async (place) => {
    const rivals = await Rivals.start(
      framework,
      placed(place, (res) => res.send('x'.repeat(10_000))),
      { headers: gzipped, locks: { bare: true } },
    );
    await rivals.expectStillHeld();
    rivals.go();
    await rivals.expectHandedOn();
    await rivals.expectAnswer(/Content-Encoding: gzip[\s\S]*\r\n0\r\n\r\n$/);
    rivals.stage.expectOrder('first in', 'first answers', 'released first k', 'second in');
  });

  it('mounted above traceContext, a client that does not read its answer keeps nobody waiting', async () => {
    const rivals = await Rivals.start(
      framework,
      placed('above', (res) => res.send(large)),
      { headers: gzipped, locks: { bare: true } },
    );
    rivals.first.pause();
    rivals.go();
    await rivals.expectHandedOn();
    expect(rivals.first.received).toBe('');
  });

  it('mounted below traceContext, a guard holds until the compressed answer was handed to the connection', async () => {
    const rivals = await Rivals.start(
      framework,
      placed('below', (res) => res.send(large)),
      { headers: gzipped, locks: { bare: true } },
    );
    rivals.first.pause();
    rivals.go();
    await rivals.stage.until('first answers');
    await rivals.expectStillHeld();
    rivals.first.socket.resume();
    await rivals.expectHandedOn();
    rivals.stage.expectOrder('first answers', 'released first k', 'second in');
  });

  it.each(hangups)(
    'mounted below traceContext, a client that leaves amid its answer (%s) costs abortGraceMs: compression never ends it',
    async (how) => {
      const clock = new ManualClock();
      const rivals = await Rivals.start(
        framework,
        placed('below', (res) => res.send(large)),
        { headers: gzipped, locks: { bare: true, clock, waitMs: Number.POSITIVE_INFINITY } },
      );
      rivals.first.pause();
      rivals.go();
      await rivals.stage.until('first answers');
      await rivals.expectStillHeld();
      await rivals.first.hangUp(how);
      await rivals.expectStillHeld();
      await clock.advance(29_999);
      await rivals.expectHeld();
      await clock.advance(1);
      await rivals.second;
      rivals.stage.expectOrder('first answers', 'lost first k', 'second in');
    },
  );

  it.each(['above', 'below'] as const)(
    'mounted %s traceContext, an answer that is written piece by piece holds until its end',
    async (place) => {
      let response: Response | undefined;
      const rivals = await Rivals.start(
        framework,
        placed(place, (res) => {
          response = res;
          res.write('one,');
          res.flush();
        }),
        { headers: gzipped, locks: { bare: true } },
      );
      rivals.go();
      await rivals.first.receives(/\r\n\r\n[\s\S]+\r\n/);
      await rivals.expectStillHeld();
      response?.end('two.');
      await rivals.expectHandedOn();
      await rivals.expectAnswer(/\r\n0\r\n\r\n$/);
    },
  );
});
