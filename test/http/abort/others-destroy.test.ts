import type { ServerResponse } from 'node:http';
import { type Call, describeStyles } from '../../support/http/frameworks.ts';
import { clientLeaves, ServerStage } from '../../support/http/server-stage.ts';

const head = 'HTTP/1.1\r\nHost: localhost';

const stranger = 'a handler below no traceContext';

/** What a client can send behind its request, and what the server then does to their connection. */
const endings = [
  ['Node, for a CONNECT that nobody listens for', `CONNECT a:1 ${head}\r\n\r\n`],
  ['Node, for garbage', '\0garbage\r\n\r\n'],
  ['Node, for headers that are too long', `GET /x ${head}\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`],
  ['the handler of another request', `GET /destroys ${head}\r\n\r\n`],
  [stranger, `GET /stranger ${head}\r\n\r\n`],
  ['the error handling of another request', `GET /fails ${head}\r\n\r\n`],
] as const;

describeStyles('A connection that is destroyed under a handler', (framework) => {
  /** Of the requests that destroy it: whether they are over can't be told either, until they say so. */
  const others: ServerResponse[] = [];
  afterEach(() => {
    for (const res of others.splice(0)) res.end();
  });

  /** The module of Nest gives each request its trace. */
  const hasStrangers = framework.adapter !== 'nest';
  const isPlayed = ([name]: readonly [string, string]): boolean => hasStrangers || name !== stranger;

  async function start(): Promise<ServerStage> {
    return ServerStage.start(framework, { bare: true }, (app, stage) => {
      /** As finalhandler does, where an asynchronous handler fails after its answer. */
      const failLate = ({ req, res }: Call): void => {
        res.end('early');
        void stage.until('answered fails').then(() => req.socket.destroy());
      };
      app
        .use(
          framework.middleware((call, next) => {
            if (call.req.url === '/stranger') return void call.req.socket.destroy();
            if (call.req.url === '/stranger/slow')
              return stage.until('waiting second k').then(() => call.req.socket.destroy());
            return call.req.url === '/answered/stranger' ? failLate(call) : next();
          }),
        )
        .use(framework.traceContext({ locks: stage.locks }))
        .route('/work/:id', framework.lockOn('k'), async (call) => {
          stage.note(`${call.params.id} in`);
          if (call.params.id === 'first') await clientLeaves(stage);
          expect(await stage.holder('k')).toBe(call.params.id);
          stage.note(`${call.params.id} out`);
          call.send('late');
        })
        .route('/answered/traced', failLate)
        .route('/destroys', ({ req, res }) => {
          others.push(res);
          req.socket.destroy();
        })
        .route('/fails', (call) => {
          others.push(call.res);
          call.res.write('part');
          // What finalhandler does; others leave the connection to their application.
          if (framework.style === 'promise' || framework.adapter === 'fastify') call.req.socket.destroy();
          call.fail(new Error('in the middle'));
        })
        .route('/itself/:how', framework.lockOn('k'), async (call) => {
          stage.note('itself in');
          (({ request: call.req, response: call.res })[String(call.params.how)] ?? call.req.socket).destroy();
          if (call.params.how !== 'response') await clientLeaves(stage);
        });
    });
  }

  it.each(endings.filter(isPlayed))(
    '[others-destroy-01] A connection that is destroyed by %s leaves the handler its hold until its end',
    async (_, bytes) => {
      const stage = await start();
      const client = await stage.connect();
      client.request({ path: '/work/first', trace: 'first' });
      await stage.until('first in');
      const second = stage.get('/work/second', 'second');
      await stage.until('waiting second k');
      client.socket.write(bytes, 'latin1');
      expect((await second).status).toBe(200);
      stage.expectOrder('first in', 'first hears', 'first out', 'second in', 'second out');
      expect(stage.journal.filter((line) => line.startsWith('lost'))).toEqual([]);
    },
  );

  const failures = [
    ['a handler that fails', '/answered/traced'],
    [stranger, '/answered/stranger'],
  ] as const;

  it.each(failures.filter(isPlayed))(
    '[others-destroy-02] A connection that is destroyed by %s long after its response leaves the hold until the handler’s end',
    async (_, path) => {
      const stage = await start();
      const client = await stage.connect();
      client.request({ path });
      await client.receives(/early$/);
      client.request({ path: '/work/first', trace: 'first' });
      await stage.until('first in');
      const second = stage.get('/work/second', 'second');
      await stage.until('waiting second k');
      stage.note('answered fails');
      expect((await second).status).toBe(200);
      stage.expectOrder('answered fails', 'first hears', 'first out', 'second in', 'second out');
      expect(stage.journal.filter((line) => line.startsWith('lost'))).toEqual([]);
    },
  );

  if (hasStrangers)
    it('A connection that is destroyed by a handler below no traceContext leaves the guarded handler its hold until its end', async () => {
      const stage = await start();
      const client = await stage.connect();
      client.request({ path: '/stranger/slow' }, { path: '/work/first', trace: 'first' });
      await stage.until('first in');
      const second = stage.get('/work/second', 'second');
      expect((await second).status).toBe(200);
      stage.expectOrder('first in', 'waiting second k', 'first hears', 'first out', 'second in', 'second out');
      expect(stage.journal.filter((line) => line.startsWith('lost'))).toEqual([]);
    });

  it.each(['request', 'response', 'connection'])(
    '[others-destroy-03] A handler that destroys the connection with its own %s releases the lock at once, even on a connection that was used before',
    async (how) => {
      const stage = await start();
      const client = await stage.connect();
      client.request({ path: '/work/before', trace: 'before' }, { path: `/itself/${how}`, trace: 'itself' });
      await stage.until('itself in');
      await stage.free('k');
      expect(stage.journal.filter((line) => line.startsWith('lost'))).toEqual([]);
    },
  );

  it('A handler that destroys the connection with its own request releases the lock at once, even if the connection had timed out while idle', async () => {
    const stage = await start();
    // Who listens keeps it.
    stage.server.on('timeout', () => stage.note('timed out'));
    stage.server.keepAliveTimeout = 1;
    const client = await stage.connect();
    client.request({ path: '/work/before', trace: 'before' });
    await stage.until('timed out');
    client.request({ path: '/itself/request', trace: 'itself' });
    await stage.until('itself in');
    await stage.free('k');
    expect(stage.journal.filter((line) => line.startsWith('lost'))).toEqual([]);
  });
});
