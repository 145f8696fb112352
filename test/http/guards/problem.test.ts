import { STATUS_CODES } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import { getLock, type LockErrorCode, type LockStore, lock, MemoryStore, runInTrace } from 'reenlock';
import type { Response } from 'supertest';
import { defaultInstance } from '../../../src/core/model/process-name.ts';
import { gate } from '../../support/gate.ts';
import { type App, describeFrameworks, type Framework, type GuardOptions } from '../../support/http/frameworks.ts';
import { ServerStage, type ServerStageOptions } from '../../support/http/server-stage.ts';
import { recordWarnings } from '../../support/warnings.ts';

recordWarnings();

const secretKey = 'account:4711-secret';
const holder = 'owner-of-the-lock';
const requester = 'owner-who-asks';
const connection = 'redis://user:pa55word@10.0.0.7:6379';
const secrets = [secretKey, '4711', holder, requester, defaultInstance(), connection, 'pa55word', '10.0.0.7'];

/** How a guard comes to refuse a request, and what its client is told. */
interface Refusal {
  readonly code: LockErrorCode;
  readonly status: number;
  /** What clients may read of it; undefined where the message is not for them. */
  readonly message?: string;
  readonly hasRetryAfter: boolean;
  /** An answer rather than a bug: its stack is one line. */
  readonly isOneLine: boolean;
  readonly options?: ServerStageOptions;
  /** Builds the route `/x`. */
  build(app: App, framework: Framework, guard: GuardOptions): unknown;
  /** What stands in the way until the answer has come. */
  obstruct?(stage: ServerStage, answered: Promise<void>): Promise<{ over: Promise<unknown> }>;
}

const answer = { hasRetryAfter: true, isOneLine: true };
const bug = { hasRetryAfter: false, isOneLine: false };
const done = (): void => {};
const key = (): string => secretKey;
const ownKey = (): string => `${secretKey}:own`;
/** Once somebody waits for the other one. */
const awaitedKey = async (): Promise<string> => {
  while ((await getLock(ownKey()).inspect()).waiters.length === 0) await turn();
  return secretKey;
};

/** What stands in place of a message that is not for clients. */
function withheld({ code }: Refusal): string {
  if (code === 'ERR_LOCK_STORE') return 'The lock that the request needs could not be acquired; try again later';
  if (code === 'ERR_LOCK_LOST')
    return 'The lock of the request failed during its work, which may have been done in part';
  return 'The server failed to acquire a lock that the request needs';
}

const refusals: readonly Refusal[] = [
  {
    ...answer,
    code: 'ERR_LOCK_TIMEOUT',
    status: 423,
    message: 'The lock was not free within 0 ms',
    build: (app, { lockOn }, guard) => app.route('/x', lockOn(key, { ...guard, waitMs: 0 }), done),
    obstruct: hold,
  },
  {
    ...answer,
    code: 'ERR_LOCK_LIMIT',
    status: 503,
    message: 'The lock was re-entered 1 times without a release',
    options: { maxReentry: 1 },
    build: (app, { lockOn }, guard) => app.route('/x', lockOn(key), lockOn(key, guard), done),
  },
  {
    ...answer,
    hasRetryAfter: false,
    code: 'ERR_LOCK_ABORTED',
    status: 503,
    message: 'The wait for the lock was aborted',
    build: (app, { lockOn }, guard) =>
      app.route('/x', lockOn(key, { ...guard, signal: AbortSignal.abort(new Error(connection)) }), done),
  },
  {
    ...answer,
    hasRetryAfter: false,
    code: 'ERR_LOCK_DEADLOCK',
    status: 409,
    message: 'The request waited in a deadlock with others',
    build: (app, { lockOn }, guard) => app.route('/x', lockOn(ownKey), lockOn(awaitedKey, guard), done),
    obstruct: holdAndWait,
  },
  {
    ...bug,
    code: 'ERR_LOCK_LOST',
    status: 503,
    build: (app, { lockOn, middleware }, guard) => {
      const lose = middleware(async (_, next) => {
        await getLock(secretKey).forceRelease();
        return next();
      });
      return app.route('/x', lockOn(key), lose, lockOn(key, guard), done);
    },
  },
  {
    ...bug,
    hasRetryAfter: true,
    code: 'ERR_LOCK_STORE',
    status: 503,
    options: { store: failingStore() },
    build: (app, { lockOn }, guard) => app.route('/x', lockOn(key, guard), done),
  },
  {
    ...answer,
    code: 'ERR_LOCK_CLOSED',
    status: 503,
    message: 'The server is shutting down',
    build: (app, { lockOn }, guard) => app.route('/x', lockOn(key, guard), done),
    obstruct: async (stage) => ({ over: stage.locks.close() }),
  },
  {
    ...bug,
    code: 'ERR_LOCK_KEY',
    status: 400,
    message: 'Expected the lock key to be 4096 bytes at most, got 5019',
    build: (app, { lockOn }, guard) =>
      app.route(
        '/x',
        lockOn(() => secretKey + 'x'.repeat(5_000), guard),
        done,
      ),
  },
  {
    ...bug,
    code: 'ERR_LOCK_SCOPE',
    status: 500,
    options: { bare: true },
    build: (app, { lockOn }, guard) => app.route('/x', lockOn(key, guard), done),
  },
  {
    ...bug,
    code: 'ERR_LOCK_NOT_HELD',
    status: 500,
    build: (app, { lockOn }, guard) => {
      const release = async (): Promise<string> => {
        await lock.release(secretKey);
        return secretKey;
      };
      return app.route('/x', lockOn(release, guard), done);
    },
  },
  {
    ...bug,
    code: 'ERR_LOCK_CONFIG',
    status: 500,
    build: (app, { lockOn }, guard) =>
      app.route('/x', lockOn(key), lockOn(key, { ...guard, reentrant: 'request' }), done),
  },
];
const byCode = refusals.map((refusal) => [refusal.code, refusal] as const);

describeFrameworks('a guard’s refusal', (framework) => {
  const { NODE_ENV } = process.env;
  // Express logs each error, in a later turn than it answers: after the last test, too.
  beforeAll(() => {
    jest.spyOn(console, 'error').mockImplementation(() => {});
  });
  afterEach(() => {
    process.env.NODE_ENV = NODE_ENV;
  });

  async function refused(refusal: Refusal, guard: GuardOptions, environment: string): Promise<Response> {
    process.env.NODE_ENV = environment;
    const answered = gate();
    const stage = await ServerStage.start(framework, refusal.options, (app) => refusal.build(app, framework, guard));
    const obstruction = await refusal.obstruct?.(stage, answered);
    const response = await stage.get('/x', requester);
    answered.open();
    await obstruction?.over;
    const { status, headers, text } = response;
    expect(status).toBe(refusal.status);
    expect(headers['retry-after'] ?? 'none').toMatch(refusal.hasRetryAfter ? /^[1-9]\d*$/ : /^none$/);
    for (const secret of secrets) expect(text).not.toContain(secret);
    return response;
  }

  describe.each(['production', 'development'])('with NODE_ENV=%s', (environment) => {
    it.each(byCode)('A refusal of %s shows its client only the part that is meant for it', async (_, refusal) => {
      const { status, message, isOneLine } = refusal;
      const { text } = await refused(refusal, {}, environment);
      const { adapter } = framework;
      if (adapter === 'fastify')
        expect(JSON.parse(text)).toMatchObject({ statusCode: status, ...(message && { message }) });
      else if (adapter === 'hono' || adapter === 'nest')
        expect(JSON.parse(text)).toMatchObject({ detail: message ?? withheld(refusal) });
      else if (adapter !== 'express') expect(text).toBe(message ?? STATUS_CODES[status]);
      else if (environment === 'production') expect(text).toContain(`<pre>${STATUS_CODES[status]}</pre>`);
      // In development Express answers with the stack: the route, and no line of the server's code.
      else if (isOneLine)
        expect(text).toMatch(new RegExp(`<pre>\\w+Error: ${message}<br>[^<]*at lockOn \\(GET /x\\)</pre>`));
    });

    it.each(byCode)('A refusal of %s is a complete problem document with sendProblem', async (code, refusal) => {
      const { headers, text } = await refused(refusal, { handler: 'problem' }, environment);
      expect(headers['content-type']).toBe('application/problem+json');
      expect(JSON.parse(text)).toEqual({
        type: 'about:blank',
        title: STATUS_CODES[refusal.status],
        status: refusal.status,
        detail: refusal.message ?? withheld(refusal),
        code,
      });
    });
  });

  it.each([
    [409, 'Conflict'],
    [499, 'Refused'],
  ])('A refusal with its own status is the problem of that status, %i', async (status, title) => {
    const refusal = { ...refusals[0]!, status };
    const { text } = await refused(refusal, { handler: 'problem', statusCode: status }, 'production');
    expect(JSON.parse(text)).toMatchObject({ title, status, code: 'ERR_LOCK_TIMEOUT' });
  });

  it('A refusal is a complete problem document even if headers of another body were set before', async () => {
    const promise = framework.middleware(({ res }, next) => {
      for (const name of ['Content-Encoding', 'Content-Language', 'Content-Range'])
        res.setHeader(name, 'of another body');
      res.setHeader('Content-Length', 5);
      res.setHeader('Transfer-Encoding', 'chunked');
      return next();
    });
    const stage = await ServerStage.start(framework, (app) =>
      app.route(
        '/x',
        promise,
        framework.lockOn(() => '', { handler: 'problem' }),
        done,
      ),
    );
    const client = (await stage.connect()).request({ path: '/x', headers: ['Connection: close'] });
    await client.closed;
    const [head, body = ''] = client.received.split('\r\n\r\n');
    expect(head).not.toContain('of another body');
    expect(head).not.toContain('Transfer-Encoding');
    expect(head?.toLowerCase()).toContain(`content-length: ${body.length}`);
    expect(JSON.parse(body)).toMatchObject({ code: 'ERR_LOCK_KEY' });
  });

  it('A refusal leaves the error, with its key, in `res.err` for request loggers', async () => {
    const logged: unknown[] = [];
    const log = framework.middleware(({ res }, next) => {
      res.once('finish', () => logged.push((res as { err?: unknown }).err));
      return next();
    });
    const stage = await ServerStage.start(framework, (app, stage) => {
      void stage.locks.close();
      return app.route('/x', log, framework.lockOn('k', { handler: 'problem' }), done);
    });
    expect((await stage.get('/x')).status).toBe(503);
    await stage.shutDown();
    expect(logged).toEqual([expect.objectContaining({ code: 'ERR_LOCK_CLOSED', key: 'k' })]);
  });

  // Fastify, Hono and Nest have written the headers before the end.
  if (!['fastify', 'hono', 'nest'].includes(framework.adapter)) {
    it('A refusal keeps the connection usable if its length is removed, as compression does', async () => {
      const compress = framework.middleware(({ res }, next) => {
        const end = res.end.bind(res);
        res.end = ((...args: Parameters<typeof end>) => {
          res.removeHeader('Content-Length');
          return end(...args);
        }) as typeof end;
        return next();
      });
      const stage = await ServerStage.start(framework, (app) =>
        app.route(
          '/x',
          compress,
          framework.lockOn(() => '', { handler: 'problem' }),
          done,
        ),
      );
      const client = (await stage.connect()).request({ path: '/x' });
      await client.receives(/ERR_LOCK_KEY[\s\S]*\r\n0\r\n\r\n$/);
      expect(client.received).toMatch(/^Connection: keep-alive\r$/m);
    });
  }

  it('A refusal after the response has begun goes to the error handler, and is not written into that response', async () => {
    const begin = framework.middleware(({ res }, next) => {
      res.writeHead(200, { 'Content-Type': 'text/plain' }).write('begun');
      return next();
    });
    const stage = await ServerStage.start(framework, (app, stage) => {
      void stage.locks.close();
      return app
        .onError((error, { res }) => {
          stage.note(`failed by ${error.code}`);
          res.end();
        })
        .route('/x', begin, framework.lockOn(key, { handler: 'problem' }), done);
    });
    const client = (await stage.connect()).request({ path: '/x', headers: ['Connection: close'] });
    await client.closed;
    expect(client.received).toMatch(/^HTTP\/1\.1 200[\s\S]*begun/);
    expect(client.received).not.toContain('about:blank');
    expect(stage.journal).toEqual(['failed by ERR_LOCK_CLOSED']);
  });
});

async function hold(stage: ServerStage, answered: Promise<void>): Promise<{ over: Promise<unknown> }> {
  const taken = gate();
  const job = async (): Promise<void> => {
    await lock.acquire(secretKey);
    taken.open();
    await answered;
  };
  const over = runInTrace(job, { locks: stage.locks, traceId: holder });
  await taken;
  return { over };
}

/** Holds what the request asks for, and asks for what it holds. */
async function holdAndWait(stage: ServerStage): Promise<{ over: Promise<unknown> }> {
  const taken = gate();
  const isHeld = gate();
  stage.locks.on('granted', ({ key }) => key === ownKey() && isHeld.open());
  const job = async (): Promise<void> => {
    await lock.acquire(secretKey);
    taken.open();
    await isHeld;
    await lock.acquire(ownKey());
  };
  const over = runInTrace(job, { locks: stage.locks, traceId: holder });
  await taken;
  return { over };
}

function failingStore(): LockStore {
  const store = new MemoryStore();
  store.acquire = () => Promise.reject(new Error(`connect ECONNREFUSED ${connection}`));
  return store;
}
