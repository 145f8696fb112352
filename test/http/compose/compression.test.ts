import { randomBytes } from 'node:crypto';
import compression from 'compression';
import type { RequestHandler, Response } from 'express';
import { traceContext } from 'reenlock/express';
import { Contest, type Work } from '../../support/http/contest.ts';
import type { App } from '../../support/http/frameworks.ts';
import { describeExpress } from '../../support/http/native.ts';
import type { ServerStage } from '../../support/http/server-stage.ts';

const gzipped = ['Accept-Encoding: gzip'];
/** More than the buffers of a loopback connection take, compressed too. */
const large = randomBytes(16 * 2 ** 20);

describeExpress('A guard beside compression', (framework) => {
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

  it.each(['above', 'below'] as const)(
    'With compression mounted %s traceContext, a guard holds until the response',
    async (place) => {
      const contest = await Contest.through(
        framework,
        { headers: gzipped, locks: { bare: true } },
        placed(place, (res) => res.send('x'.repeat(10_000))),
      );
      await contest.expectHeldUntilGo();
      await contest.expectAnswer(/Content-Encoding: gzip[\s\S]*\r\n0\r\n\r\n$/);
      contest.stage.expectOrder('first in', 'first answers', 'released first k', 'second in');
    },
  );

  it('With compression mounted above traceContext, a client that does not read its response blocks no other request', async () => {
    const contest = await Contest.through(
      framework,
      { headers: gzipped, locks: { bare: true } },
      placed('above', (res) => res.send(large)),
    );
    contest.first.pause();
    contest.go();
    await contest.expectReleasedOnce();
    expect(contest.first.received).toBe('');
  });

  it('With compression mounted below traceContext, a guard holds until the compressed response was handed to the connection', async () => {
    const contest = await Contest.through(
      framework,
      { headers: gzipped, locks: { bare: true } },
      placed('below', (res) => res.send(large)),
    );
    contest.first.pause();
    contest.go();
    await contest.stage.until('first answers');
    await contest.expectStillHeld();
    contest.first.socket.resume();
    await contest.expectReleasedOnce();
    contest.stage.expectOrder('first answers', 'released first k', 'second in');
  });

  it.each(['above', 'below'] as const)(
    'With compression mounted %s traceContext, a response that is written in pieces holds until its end',
    async (place) => {
      let response: Response | undefined;
      const contest = await Contest.through(
        framework,
        { headers: gzipped, locks: { bare: true } },
        placed(place, (res) => {
          response = res;
          res.write('one,');
          res.flush();
        }),
      );
      contest.go();
      await contest.first.receives(/\r\n\r\n[\s\S]+\r\n/);
      await contest.expectStillHeld();
      response?.end('two.');
      await contest.expectReleasedOnce();
      await contest.expectAnswer(/\r\n0\r\n\r\n$/);
    },
  );
});
