import { AsyncResource } from 'node:async_hooks';
import { Readable } from 'node:stream';
import { currentTrace, lock } from 'reenlock';
import { describeFrameworks } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';

/** Work of a body that begins when the body is read: after the handler, in Koa and Hono. */
async function describeScope(): Promise<string> {
  const fence = await lock.run('k', (hold) => hold.fence);
  return `${currentTrace()?.traceId} ${fence}`;
}

describeFrameworks('The body of a response that is made when it is read', (framework) => {
  it('A body that is bound to its handler re-enters the request’s lock when it is read', async () => {
    const stage = await ServerStage.start(framework, (app) =>
      app.route('/first', framework.lockOn('k'), (call) => {
        const read = async (): Promise<void> => {
          source.push(`${await describeScope()} ${call.lock?.fence}`);
          source.push(null);
        };
        const source = new Readable({ read: AsyncResource.bind(read) });
        call.stream(source);
      }),
    );
    const { text, body } = await stage.get('/first');
    const [trace, inBody, inHandler] = (text || String(body)).split(' ');
    expect(trace).toBe('first');
    expect(inBody).toBe(inHandler);
  });
});
