import { once } from 'node:events';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { ROOT_CONTEXT } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { createLocks, currentTrace } from 'reenlock';
import { type Call, describeFrameworks } from '../../support/http/frameworks.ts';

/** As OpenTelemetry's instrumentation of `node:http` does it, before the application gets the request. */
function instrumented(listener: RequestListener): RequestListener {
  const contexts = new AsyncLocalStorageContextManager().enable();
  return (req, res) => listener(contexts.bind(ROOT_CONTEXT, req), contexts.bind(ROOT_CONTEXT, res));
}

describeFrameworks('Listeners of a request and its response below traceContext', (framework) => {
  describe.each<[string, (listener: RequestListener) => RequestListener]>([
    ['alone', (listener) => listener],
    ['below OpenTelemetry', instrumented],
  ])('%s', (_, above) => {
    /** Posts a body to a handler, which the framework's own response follows. */
    async function post(handle: (req: IncomingMessage, res: ServerResponse) => unknown): Promise<void> {
      const locks = createLocks();
      const app = framework.app().use(framework.traceContext({ locks }));
      app.route('/x', async (call: Call) => {
        await handle(call.req, call.res);
        call.send('sent');
      });
      const server = createServer(above(await app.listener())).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/x`;
      const response = await fetch(url, { method: 'POST', body: 'body', headers: { Connection: 'close' } });
      expect(await response.text()).toBe('sent');
      server.close();
      await once(server, 'close');
      await locks.close();
    }

    it.each(['on', 'once', 'prependListener', 'prependOnceListener'] as const)(
      'A listener that was added by `%s` runs in the context of the request, and never once it was removed',
      async (add) => {
        const seen: unknown[] = [];
        const removed = jest.fn();
        await post((req, res) => {
          for (const emitter of [req, res]) {
            emitter[add]('drawn', removed);
            emitter.off('drawn', removed);
            emitter[add]('drawn', removed);
            emitter.removeListener('drawn', removed);
            emitter[add]('drawn', () => seen.push(currentTrace()?.hasEnded));
            emitter.emit('drawn');
          }
        });
        expect(seen).toEqual([false, false]);
        expect(removed).not.toHaveBeenCalled();
      },
    );

    it('A request that is unpiped does not end its former destination', async () => {
      const ended = jest.fn();
      await post(async (req) => {
        const file = new PassThrough().resume().on('finish', ended);
        req.pipe(file);
        req.unpipe(file);
        req.resume();
        if (!req.readableEnded) await once(req, 'end');
        await turn();
      });
      expect(ended).not.toHaveBeenCalled();
    });

    it('Sources that were piped into a response leave no listeners on it', async () => {
      let left = 0;
      await post(async (req, res) => {
        req.resume();
        const names = ['close', 'finish', 'error', 'drain'];
        const count = (): number => names.reduce((sum, name) => sum + res.listenerCount(name), 0);
        const before = count();
        for (let i = 0; i < 5; i++) {
          const source = Readable.from([]);
          source.pipe(res, { end: false });
          await once(source, 'end');
        }
        left = count() - before;
      });
      // Hono's server adds one of its own meanwhile.
      expect(left).toBeLessThanOrEqual(1);
    });
  });
});
