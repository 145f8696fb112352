import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { lock, runInTrace } from 'reenlock';
import { lockOn, traceContext } from 'reenlock/express';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { type Gate, gate } from '../../support/gate.ts';
import { bare } from '../../support/http/bare-app.ts';
import { Contest } from '../../support/http/contest.ts';
import { type Call, describeFrameworks } from '../../support/http/frameworks.ts';
import { ServerStage, type ServerStageOptions } from '../../support/http/server-stage.ts';

const upgrade = { path: '/first', trace: 'first', headers: ['Connection: Upgrade', 'Upgrade: chat'] };
const connect = { path: 'first:80', trace: 'first', method: 'CONNECT' };
type Takes = (req: IncomingMessage, socket: Duplex, stage: ServerStage) => unknown;

/** A connection that is taken over, and beside it a guarded route for the same key. */
function tunnel(event: 'upgrade' | 'connect', takes: Takes, locks: ServerStageOptions = {}): Promise<Contest> {
  return Contest.through(bare, { ...(event === 'upgrade' ? upgrade : connect), locks }, (_app, _work, stage) => {
    stage.server.on(event, (req: IncomingMessage, socket: Duplex) => {
      // As websocket servers do: a server that does not read never sees its client leave.
      socket.on('error', () => {}).on('end', () => socket.end());
      socket.resume();
      void takes(req, socket, stage);
    });
  });
}

describe.each(['upgrade', 'connect'] as const)('A listener for `%s`, with runInTrace', (event) => {
  afterEach(ServerStage.endAll);

  const takes: Takes = (_, socket, stage) =>
    runInTrace(
      async () => {
        await lock.acquire('k');
        socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n');
        stage.note('first in');
        await new Promise((resolve) => socket.once('close', resolve));
      },
      { locks: stage.locks, traceId: 'first' },
    );

  it('[upgrade-01] An upgraded connection keeps its lock while it lasts, and releases it when the client hangs up', async () => {
    for (const how of ['FIN', 'RST'] as const) {
      const contest = await tunnel(event, takes);
      await contest.expectStillHeld();
      await contest.first.hangUp(how);
      await contest.expectReleasedOnce();
    }
  });
});

describe('A listener for `upgrade`, with traceContext and a guard by hand', () => {
  afterEach(ServerStage.endAll);

  /** Guards the connection; `work` says what becomes of it. */
  function guarded(work: (res: ServerResponse, socket: Duplex) => unknown): Takes {
    return (req, socket, stage) => {
      const res = new ServerResponse(req);
      traceContext({ locks: stage.locks })(req, res, () =>
        lockOn('k')(req, res, (error) => {
          if (error !== undefined) {
            res.end();
            return;
          }
          socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n');
          stage.note('first in');
          void work(res, socket);
        }),
      );
    };
  }

  it('[upgrade-02] An upgrade listener that ends the response that it made releases the lock, though nothing of it is sent', async () => {
    const done = gate();
    const contest = await tunnel(
      'upgrade',
      guarded((res) => done.then(() => res.end())),
    );
    await contest.expectStillHeld();
    done.open();
    await contest.expectReleasedOnce();
  });

  it('[upgrade-03] An upgrade listener that destroys the connection releases the lock', async () => {
    const done = gate();
    const contest = await tunnel(
      'upgrade',
      guarded((_, socket) => done.then(() => socket.destroy())),
    );
    await contest.expectStillHeld();
    done.open();
    await contest.expectReleasedOnce();
  });

  it('An upgrade listener that destroys the connection because its client has disconnected keeps the lock until its end', async () => {
    const done = gate();
    const contest = await tunnel(
      'upgrade',
      guarded((res, socket) => {
        socket.removeAllListeners('end').once('end', () => socket.destroy());
        void done.then(() => res.end());
      }),
    );
    await contest.expectStillHeld();
    await contest.first.hangUp('FIN');
    await contest.expectStillHeld();
    done.open();
    await contest.expectReleasedOnce();
  });

  it('[upgrade-04] An upgrade listener that does neither keeps the lock until abortGraceMs after its client has disconnected', async () => {
    const clock = new ManualClock();
    const options = { clock, waitMs: Number.POSITIVE_INFINITY };
    const contest = await tunnel(
      'upgrade',
      guarded(() => {}),
      options,
    );
    await contest.expectStillHeld();
    await clock.advance(60_000);
    await contest.expectStillHeld();
    await contest.first.hangUp('RST');
    await contest.expectHeldForGrace(clock);
    contest.stage.expectOrder('first in', 'lost first k', 'second in');
  });

  it('[upgrade-05] An upgrade request leaves the queue when its client disconnects', async () => {
    const work = gate();
    const stage = await ServerStage.start(bare, (app, stage) => {
      stage.server.on('upgrade', (req: IncomingMessage, socket: Duplex) => {
        socket.on('error', () => {}).resume();
        guarded(() => {})(req, socket, stage);
      });
      app.route('/holder', bare.lockOn('k'), stage.handler('holder', work));
    });
    const holder = stage.visit('/holder', 'holder');
    await stage.until('holder in');
    const client = (await stage.connect()).request(upgrade);
    await stage.until('waiting first k');
    await client.hangUp('RST');
    await stage.until('aborted first k');
    work.open();
    await holder;
    await stage.free('k');
    expect(stage.journal).not.toContain('first in');
  });
});

describeFrameworks('A guarded route and the Upgrade header', (framework) => {
  it('[upgrade-06] A guarded route responds to a request with an Upgrade header that no listener takes, and releases its lock then', async () => {
    const work = gate();
    const contest = await Contest.opened(
      framework,
      {},
      async (stage) => (await stage.connect()).request(upgrade),
      (call) => answerAfter(work, call),
    );
    contest.go();
    await contest.expectHeldUntil(work);
    await contest.first.receives(/200 OK[\s\S]*first$/);
  });

  it.each(['by Node', 'by a listener for `checkContinue`'])(
    '[upgrade-07] A guarded route whose client expects `100 Continue`, sent %s, keeps its lock until the response',
    async (how) => {
      const contest = await Contest.opened(
        framework,
        {},
        async (stage) => {
          if (how !== 'by Node') {
            stage.server.on('checkContinue', (req, res) => {
              res.writeContinue();
              stage.server.emit('request', req, res);
            });
          }
          const headers = ['Expect: 100-continue', 'Content-Length: 4'];
          return (await stage.connect()).request({ path: '/first', trace: 'first', method: 'POST', headers });
        },
        async (call, stage) => {
          for await (const chunk of call.req) stage.note(`first reads ${chunk}`);
          stage.note('first answers');
          call.send('first');
        },
      );
      await contest.first.receives(/100 Continue/);
      contest.go();
      await contest.expectStillHeld();
      contest.first.socket.write('body');
      await contest.expectHandedOn();
      await contest.first.receives(/200 OK[\s\S]*first$/);
      contest.stage.expectOrder('first reads body', 'first answers', 'second in');
    },
  );
});

async function answerAfter(work: Gate, call: Call): Promise<void> {
  await work;
  call.send('first');
}
