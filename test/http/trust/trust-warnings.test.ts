import type { Trust } from 'reenlock';
import { describeStyles } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';
import { recordWarnings } from '../../support/warnings.ts';

const warnings = recordWarnings();
const { NODE_ENV } = process.env;
const signed = { secrets: ['a-secret-of-all-services-of-the-shop'], audience: 'shop' };

describeStyles('in production', (framework) => {
  beforeEach(() => {
    process.env.NODE_ENV = 'production';
  });
  afterEach(() => {
    process.env.NODE_ENV = NODE_ENV;
  });

  const codes = () => warnings().map(({ code }) => code);

  /** An application with `trust` on its `Locks`, or on its `traceContext`. */
  const start = (trust: Trust | undefined, place: 'locks' | 'context' = 'locks') =>
    ServerStage.start(framework, { bare: true, ...(place === 'locks' && { trust }) }, (app, stage) =>
      app
        .use(framework.traceContext({ locks: stage.locks, ...(place === 'context' && { trust }) }))
        .route('/x', (call) => call.send({})),
    );

  it.each(['locks', 'context'] as const)(
    "`trust: 'all'` on the %s warns once, with the first request",
    async (place) => {
      const [one, other] = [await start('all', place), await start('all', place)];
      expect(codes()).toEqual([]);
      const client = (await one.connect()).request({ path: '/x', headers: ['Connection: close'] });
      await client.closed;
      expect(client.received).toMatch(/^HTTP\/1.1 200 /);
      expect(codes()).toEqual(['LOCK_TRUST_ALL']);
      await one.get('/x');
      await other.get('/x');
      expect(codes()).toEqual(['LOCK_TRUST_ALL']);
      expect(warnings()).toMatchObject([
        {
          message: expect.stringContaining("`trust` is 'all'"),
          detail: 'See node_modules/reenlock/docs/reference/errors.md#lock_trust_all',
        },
      ]);
    },
  );

  it('`trust` that is not set adopts no id, and warns once, when the first request brings a trace header', async () => {
    const stage = await start(undefined);
    const reasons: string[] = [];
    stage.locks.on('headerRefused', ({ reason }) => reasons.push(reason));
    const client = (await stage.connect()).request({ path: '/x', headers: ['Connection: close'] });
    await client.closed;
    expect(codes()).toEqual([]);
    const responses = [await stage.get('/x', 'sent'), await stage.get('/x', 'sent')];
    const ids = responses.map(({ headers }) => headers['x-trace-id']);
    expect(ids).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), expect.stringMatching(/^[0-9a-f]{32}$/)]);
    expect(new Set(ids).size).toBe(2);
    expect(reasons).toEqual(['untrusted', 'untrusted']);
    expect(codes()).toEqual(['LOCK_TRUST']);
    expect(warnings()[0]?.message).toMatch(/'internal'.*\{ secrets, audience \}.*'none'/);
  });

  it('`trust` that is not set does not warn of a malformed header: that is never adopted', async () => {
    const stage = await start(undefined);
    await stage.get('/x', 'not an id');
    expect(codes()).toEqual([]);
  });

  it.each<[string, Trust]>([
    ["'internal'", 'internal'],
    ["'none'", 'none'],
    ['a predicate', () => true],
    ['secrets', signed],
  ])('`trust` of %s needs no warning', async (_, trust) => {
    for (const place of ['locks', 'context'] as const) await (await start(trust, place)).get('/x');
    expect(codes()).toEqual([]);
  });

  it("The option of `traceContext` counts if the `Locks` has 'all'", async () => {
    const stage = await ServerStage.start(framework, { bare: true, trust: 'all' }, (app, stage) =>
      app.use(framework.traceContext({ locks: stage.locks, trust: 'none' })).route('/x', (call) => call.send({})),
    );
    expect((await stage.get('/x', 'sent')).headers['x-trace-id']).not.toBe('sent');
    expect(codes()).toEqual([]);
  });

  it.each(['development', 'test', ''])(
    'Production warnings about trust do not appear with NODE_ENV=%s',
    async (env) => {
      process.env.NODE_ENV = env;
      await (await start('all')).get('/x');
      const { headers } = await (await start(undefined)).get('/x', 'sent', { 'X-Forwarded-For': '203.0.113.9' });
      expect(headers['x-trace-id']).not.toBe('sent');
      expect((await (await start(undefined)).get('/x', 'sent')).headers['x-trace-id']).toBe('sent');
      expect(codes()).toEqual([]);
    },
  );
});
