import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { addAbortSignal } from 'node:stream';
import { gate } from '../../support/gate.ts';
import { Contest } from '../../support/http/contest.ts';
import { type Call, describeFrameworks } from '../../support/http/frameworks.ts';
import type { RawClient } from '../../support/http/raw-client.ts';
import { clientLeaves } from '../../support/http/server-stage.ts';

interface Victim {
  readonly server: Server;
  readonly client: RawClient;
  readonly socket: Socket;
  readonly call: Call;
}

/** Code of the server that ends a connection while the server goes on listening. None of it belongs to the request. */
const kickers: readonly (readonly [string, (victim: Victim) => unknown])[] = [
  ['`server.closeAllConnections()`', ({ server }) => server.closeAllConnections()],
  ['a limit on the age of connections', ({ socket }) => socket.destroy()],
  ['a limit that gives its reason', ({ socket }) => socket.destroy(new Error('too old'))],
  ['a kicked session that destroys the request', ({ call }) => call.req.destroy()],
  ['a kicked session that destroys the response', ({ call }) => call.res.destroy()],
  [
    'a listener for `clientError`, for garbage from the client,',
    ({ server, client }) => {
      server.on('clientError', (_error, socket) => socket.destroy());
      client.socket.write('garbage\r\n\r\n');
    },
  ],
];

describeFrameworks('A connection that is destroyed by code that is not the handler’s', (framework) => {
  it.each(kickers)('[kicked-01] A handler keeps its hold until its end if %s ends its connection', async (_, kick) => {
    const work = gate();
    let call: Call | undefined;
    const contest = await Contest.start(framework, async (own, stage) => {
      call = own;
      stage.note('first works');
      await clientLeaves(stage);
      await work;
      own.send('to nobody');
    });
    contest.go();
    await contest.stage.until('first works');
    const victim = call as unknown as Call;
    kick({ server: contest.stage.server, client: contest.first, socket: victim.req.socket, call: victim });
    await contest.stage.until('first hears');
    // Such code may have ended the connection of the second request, too.
    expect(await contest.stage.holder('k')).toBe('first');
    expect(contest.stage.journal).not.toContain('second in');
    work.open();
    await contest.second.catch(() => {});
    await contest.stage.free('k');
    expect(contest.stage.journal.filter((line) => line.startsWith('lost'))).toEqual([]);
  });

  it.each([
    ['its request', (call: Call) => call.req.destroy()],
    ['its request by a signal', (call: Call) => addAbortSignal(AbortSignal.abort(), call.req).on('error', () => {})],
    ['its response', (call: Call) => call.res.destroy()],
    ['its connection', (call: Call) => call.req.socket.destroy()],
  ] as const)(
    '[kicked-02] A handler that destroys %s releases the lock, also if the server has a listener for `clientError`',
    async (_, destroy) => {
      const contest = await Contest.start(framework, (call, stage) => {
        stage.server.on('clientError', () => {});
        destroy(call);
      });
      contest.go();
      await contest.expectHandedOn();
      expect(contest.stage.journal.filter((line) => line.startsWith('lost'))).toEqual([]);
    },
  );
});
