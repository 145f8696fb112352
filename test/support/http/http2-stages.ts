import { constants } from 'node:http2';
import { matrix } from '../matrix.ts';
import { type OptionsFirst, optionsOf } from '../options-first.ts';
import { pathOf } from '../path-of.ts';
import { bare } from './bare-app.ts';
import { Contest, type ContestOptions, type FirstHandler } from './contest.ts';
import { fastify5 } from './fastify-app.ts';
import { type Framework, nestOnFastify } from './frameworks.ts';
import { hono4 } from './hono-app.ts';
import type { Http2Exchange } from './http2-client.ts';
import { koa2, koa3 } from './koa-app.ts';
import type { Protocol } from './protocols.ts';
import { ServerStage } from './server-stage.ts';

/** The frameworks that run on HTTP/2: Express does not. */
export const onHttp2: readonly Framework[] = matrix([bare, koa3, fastify5, hono4], () => [nestOnFastify(), koa2()]);

/** Each of them with each way to speak HTTP/2. */
export const stages: readonly (readonly [Protocol, string, Framework])[] = onHttp2.flatMap((framework) =>
  (['HTTP/2', 'HTTP/2 over TLS'] as const).map((protocol) => [protocol, framework.name, framework] as const),
);

/** The ways in which a client of HTTP/2 can leave. */
export const hangups: readonly (readonly [string, (exchange: Http2Exchange) => void])[] = [
  ['RST_STREAM', ({ stream }) => stream.close(constants.NGHTTP2_CANCEL)],
  ['a destroyed stream', ({ stream }) => void stream.destroy()],
  ['a destroyed session', ({ stream }) => stream.session?.destroy()],
  ['GOAWAY with an error', ({ stream }) => stream.session?.goaway(constants.NGHTTP2_INTERNAL_ERROR)],
];

/** A contest whose first request has a connection of HTTP/2. */
export function startHttp2(
  framework: Framework,
  protocol: Protocol,
  ...how: OptionsFirst<ContestOptions, FirstHandler>
): Promise<Contest<Http2Exchange>> {
  const [{ locks, ...options } = {}, handler] = optionsOf(how);
  const send = async (stage: ServerStage): Promise<Http2Exchange> =>
    (await stage.connectHttp2()).request({ path: '/first', trace: 'first' });
  return Contest.opened(framework, { ...options, locks: { ...locks, protocol } }, send, handler);
}

/** A stage whose path `/x` answers with the trace id, on the key `k`. */
export function answering(framework: Framework, protocol: Protocol, work?: Promise<void>): Promise<ServerStage> {
  return ServerStage.start(framework, { protocol }, (app, stage) =>
    app.route('/x', framework.lockOn('k'), async (call) => {
      const trace = String(pathOf(call.lock));
      stage.note(`${trace} in`);
      await work;
      expect(await stage.holder('k')).toBe(trace);
      call.send(trace);
    }),
  );
}
