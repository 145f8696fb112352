import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { id as rtracerId } from 'cls-rtracer';
import { describeFrameworks } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';
import { recordWarnings } from '../../support/warnings.ts';

const warnings = recordWarnings();

describeFrameworks('traceContext below cls-rtracer', (framework) => {
  it('traceContext below cls-rtracer’s middleware warns once that it must be mounted first', async () => {
    const first = await ServerStage.start(framework, (app, stage) =>
      app
        .route('/x', (call) => call.send({}))
        .route('/in-process', async (call) => {
          const socket = new PassThrough().resume() as unknown as Socket;
          const req = Object.assign(new IncomingMessage(socket), {
            method: 'GET',
            url: '/x',
            headers: { host: 'localhost' },
          });
          const res = new ServerResponse(req);
          res.assignSocket(socket);
          const answered = once(res, 'finish');
          stage.server.emit('request', req, res);
          await answered;
          call.send({ inner: res.getHeader('X-Trace-Id'), own: rtracerId() });
        }),
    );
    await first.get('/x');
    const { body } = await first.get('/in-process', 'outer');
    expect(body).toEqual({ inner: expect.stringMatching(/^[\da-f]{32}$/), own: 'outer' });
    expect(warnings()).toEqual([]);

    const below = await ServerStage.start(framework, { bare: true }, (app, stage) =>
      app
        .use(framework.rtracer())
        .use(framework.traceContext({ locks: stage.locks }))
        .route('/x', (call) => call.send({})),
    );
    await below.get('/x');
    await below.get('/x');
    expect(warnings().map(({ code }) => code)).toEqual(['LOCK_RTRACER']);
  });
});
