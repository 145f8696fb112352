import { type IncomingMessage, request } from 'node:http';
import { traceHeaders } from 'reenlock';
import { gate } from '../../support/gate.ts';
import { Contest, type ThroughOptions } from '../../support/http/contest.ts';
import { type Call, describeFrameworks } from '../../support/http/frameworks.ts';
import type { ServerStage } from '../../support/http/server-stage.ts';

/** Calls a route of the same server in the name of the request, and ends that when its client leaves. */
function forward(call: Call, stage: ServerStage, answered: (upstream: IncomingMessage) => void): void {
  const options = { port: stage.port, host: '127.0.0.1', path: '/upstream', agent: false, headers: traceHeaders() };
  const outgoing = request(options, answered).on('error', call.fail).end();
  call.res.once('close', () => outgoing.destroy());
}

const ways: [string, (call: Call, stage: ServerStage) => unknown][] = [
  [
    'pipes the answer on by itself',
    (call, stage) => {
      call.detach();
      forward(call, stage, (upstream) => upstream.pipe(call.res));
    },
  ],
  [
    'hands the answer to the framework as a stream',
    (call, stage) =>
      new Promise<void>((resolve) => {
        forward(call, stage, (upstream) => {
          call.stream(upstream);
          resolve();
        });
      }),
  ],
];

/** What the hold of the called service, a branch below the proxy's, has come to. */
function ofService({ stage }: Contest): unknown[] {
  return stage.journal.flatMap((line) => /^(granted|released) first\/\w+ k$/.exec(line)?.[1] ?? []);
}

describeFrameworks('A proxy below a guard', (framework) => {
  /** The upstream guards the same key, and sends its answer in two parts. */
  function start(
    proxy: (call: Call, stage: ServerStage) => unknown,
    options: ThroughOptions = {},
    upstreamEnds: Promise<void> = Promise.resolve(),
  ): Promise<Contest> {
    return Contest.through(framework, options, (app, work, stage) => {
      app.route('/upstream', framework.lockOn('k'), async (call) => {
        call.detach();
        call.res.write('one,');
        await work();
        call.res.write('two,');
        await upstreamEnds;
        stage.note('upstream ends');
        call.res.end('three.');
      });
      app.route('/first', framework.lockOn('k'), (call) => proxy(call, stage));
    });
  }

  it.each(ways)(
    'A proxy that %s holds the lock until its last byte, and the called service re-enters',
    async (_, proxy) => {
      const end = gate();
      const contest = await start(proxy, {}, end);
      await contest.first.receives(/one,/);
      await contest.expectStillHeld();
      contest.go();
      await contest.first.receives(/two,/);
      await contest.expectStillHeld();
      end.open();
      await contest.expectReleasedOnce();
      expect(ofService(contest)).toEqual(['granted', 'released']);
      await contest.expectAnswer(/three\./);
      contest.stage.expectOrder('first in', 'upstream ends', 'released first k', 'second in');
    },
  );

  it.each(ways)(
    'A proxy that %s, and whose client disconnects, keeps the key for the called service’s work',
    async (_, proxy) => {
      const contest = await start(proxy);
      await contest.first.receives(/one,/);
      await contest.first.hangUp('RST');
      // The proxy's own hold is released with the connection that it piped into.
      await contest.stage.until('released first k');
      await contest.stage.visit('/nowhere', 'passer-by');
      expect(await contest.stage.holder('k')).toMatch(/^first\/\w+$/);
      expect(await contest.stage.waiters('k')).toEqual(['second']);
      expect(ofService(contest)).toEqual(['granted']);
      contest.go();
      await contest.expectReleasedOnce();
      expect(ofService(contest)).toEqual(['granted', 'released']);
      contest.stage.expectOrder('released first k', 'upstream ends', 'second in');
    },
  );
});
