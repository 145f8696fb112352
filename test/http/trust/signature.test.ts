import { currentTrace, runInTrace, type Trust, traceHeaders } from 'reenlock';
import { TraceSignatures } from '../../../src/core/model/signature.ts';
import { gate } from '../../support/gate.ts';
import { bare } from '../../support/http/bare-app.ts';
import { type App, type Call, describeStyles } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';
import { pathOf } from '../../support/path-of.ts';

const minted = /^[0-9a-f]{32}$/;
const newest = 'the-newest-secret-that-everybody-has';
const older = 'an-older-secret-that-is-in-use-yet';
const trust = { secrets: [newest, older], audience: 'stock' };
const signer = (secret: string, audience = 'stock') => new TraceSignatures({ secrets: [secret], audience });

/** The signature of the id `sent`, made `agoMs` ago. */
const signed = (secret = newest, audience?: string, agoMs = 0): string =>
  signer(secret, audience).sign('sent', Date.now() - agoMs);

async function ownerIn(stage: ServerStage, headers: Record<string, string>): Promise<unknown> {
  const answer = await fetch(`http://127.0.0.1:${stage.port}/x`, { headers });
  return ((await answer.json()) as { owner: unknown }).owner;
}

const reportTrace = (app: App): App => app.route('/x', (call) => call.send({ trace: currentTrace()?.traceId }));

/** The id that a request gets which brings `sent`, and why it was not that one. */
async function outcome(
  stage: ServerStage,
  headers: readonly string[],
): Promise<{ trace: string; refusals: unknown[] }> {
  const refusals: unknown[] = [];
  const stop = stage.locks.on('headerRefused', (event) => refusals.push(event));
  const client = await stage.connect();
  client.request({ path: '/x', trace: 'sent', headers: [...headers, 'Connection: close'] });
  await client.closed;
  stop();
  expect(client.received).toMatch(/^HTTP\/1.1 200 /);
  return { trace: String(/\{"trace":"([^"]*)"\}/.exec(client.received)?.[1]), refusals };
}

const adopted = { trace: 'sent', refusals: [] };
const refused = (reason: string) => ({ trace: expect.stringMatching(minted), refusals: [{ reason }] });

// The tables need no framework: what verifies is the same for all of them.
describe('a signed trace header', () => {
  const framework = bare;
  const { traceContext } = framework;
  afterEach(ServerStage.endAll);

  it.each<[string, () => string[]]>([
    ['by the newest secret', () => [`X-Trace-Signature: ${signed()}`]],
    ['by an older secret', () => [`X-Trace-Signature: ${signed(older)}`]],
    ['in a header in other letters', () => [`x-trace-SIGNATURE: ${signed()}`]],
    ['and passed on for a public address', () => [`X-Trace-Signature: ${signed()}`, 'X-Forwarded-For: 203.0.113.9']],
  ])('A signed trace header is adopted: %s', async (_, headers) => {
    const stage = await ServerStage.start(framework, { trust }, reportTrace);
    expect(await outcome(stage, headers())).toEqual(adopted);
  });

  it.each<[string, string, () => string[]]>([
    ['absent, from loopback', 'unsigned', () => []],
    ['empty', 'malformed', () => ['X-Trace-Signature: ']],
    ['there twice', 'malformed', () => [`X-Trace-Signature: ${signed()}`, `X-Trace-Signature: ${signed()}`]],
    [
      'by a secret that is not known',
      'unknown-secret',
      () => [`X-Trace-Signature: ${signed('a-secret-that-nobody-else-has-here')}`],
    ],
    ['of another id', 'mismatch', () => [`X-Trace-Signature: ${signer(newest).sign('another', Date.now())}`]],
    ['not ASCII', 'malformed', () => ['X-Trace-Signature: \xf0\x9f\x94\x92']],
  ])(
    'A trace header is not adopted, and the request gets a new id, if the signature is %s: the event says `%s`',
    async (_, reason, headers) => {
      const stage = await ServerStage.start(framework, { trust }, reportTrace);
      expect(await outcome(stage, headers())).toEqual(refused(reason));
      // The fault was in the headers, not in the stage.
      expect(await outcome(stage, [`X-Trace-Signature: ${signed()}`])).toEqual(adopted);
    },
  );

  it('A malformed trace header is counted as malformed, whatever its signature', async () => {
    const stage = await ServerStage.start(framework, { trust }, reportTrace);
    const refusals: unknown[] = [];
    stage.locks.on('headerRefused', (event) => refusals.push(event));
    const signature = signer(newest).sign('one two', Date.now());
    const { body } = await stage.get('/x', 'one two', { 'X-Trace-Signature': signature });
    expect(body.trace).toMatch(minted);
    expect(refusals).toEqual([{ reason: 'malformed' }]);
  });

  it.each<[string, Trust | undefined, Trust, string | undefined]>([
    ['secrets on `traceContext` alone', undefined, trust, undefined],
    [
      'secrets on `traceContext`, others on its locks',
      { secrets: [`${newest}!`], audience: 'stock' },
      trust,
      undefined,
    ],
    ['other secrets on `traceContext`', trust, { secrets: [`${newest}!`], audience: 'stock' }, 'unknown-secret'],
    ["'none' on `traceContext`, secrets on its locks", trust, 'none', 'untrusted'],
  ])('A signature is verified with the options of `traceContext`: %s', async (_, ofLocks, ofContext, reason) => {
    const stage = await ServerStage.start(framework, { bare: true, trust: ofLocks }, (app, stage) =>
      reportTrace(app.use(traceContext({ locks: stage.locks, trust: ofContext }))),
    );
    expect(await outcome(stage, [`X-Trace-Signature: ${signed()}`])).toEqual(
      reason === undefined ? adopted : refused(reason),
    );
  });
});

describeStyles('a signed trace header on a framework', (framework) => {
  const { lockOn, traceContext } = framework;

  it('A signed trace header that a service sends re-enters in the service that it is for, and waits in any other', async () => {
    const go = gate();
    const locked = async (call: Call) => call.send({ owner: pathOf(call.lock) });
    const stock = await ServerStage.start(framework, { trust }, (app) => app.route('/x', lockOn('k'), locked));
    const { store } = stock;
    const bank = await ServerStage.start(
      framework,
      {
        trust: { ...trust, audience: 'bank' },
        store,
      },
      (app) => app.route('/x', lockOn('k'), locked),
    );
    let inBank: Promise<unknown> | undefined;
    const orders = await ServerStage.start(framework, { bare: true, store }, (app, stage) =>
      app
        .use(traceContext({ locks: stage.locks, trust: { secrets: [older, newest], audience: 'orders' } }))
        .route('/x', lockOn('k'), async (call) => {
          const headers = traceHeaders({ audience: 'stock' });
          const inStock = await ownerIn(stock, headers);
          // What the one was sent is no use at the other.
          inBank = ownerIn(bank, headers);
          await go;
          call.send({ owner: pathOf(call.lock), inStock });
        }),
    );
    const waits = new Promise<void>((resolve) => bank.locks.on('waiting', () => resolve()));
    const answer = orders.get('/x', 'sent', { 'X-Trace-Signature': signer(newest, 'orders').sign('sent', Date.now()) });
    await waits;
    expect(await orders.holder('k')).toBe('sent');
    expect(await orders.waiters('k')).toEqual([expect.stringMatching(minted)]);
    go.open();
    expect((await answer).body).toEqual({ owner: 'sent', inStock: expect.stringMatching(/^sent\/\w+$/) });
    expect(await inBank).toMatch(minted);
    await orders.free('k');
  });

  it('A job within a request signs with the options of `traceContext`, which override those of its locks', async () => {
    const ofContext = { secrets: [older, newest], audience: 'orders' };
    const stage = await ServerStage.start(framework, { bare: true, trust }, (app, stage) =>
      app
        .use(traceContext({ locks: stage.locks, trust: ofContext }))
        .route('/x', async (call) => call.send([traceHeaders(), await runInTrace(() => traceHeaders())])),
    );
    const { body } = await stage.get('/x', 'sent', { 'X-Trace-Signature': signed(older, 'orders') });
    for (const headers of body) {
      const [id, path, signature] = [headers['X-Trace-Id'], headers['X-Trace-Branch'], headers['X-Trace-Signature']];
      const isBy = (secret: string, audience: string) =>
        signer(secret, audience).refusalOf(path, signature, Date.now()) === undefined;
      expect([id, isBy(older, 'orders'), isBy(newest, 'stock')]).toEqual(['sent', true, false]);
    }
    expect(body).toHaveLength(2);
  });

  it('An edge that adopts no id signs its own ids with the secrets of its locks', async () => {
    const stock = await ServerStage.start(framework, { trust }, reportTrace);
    const edge = await ServerStage.start(framework, { bare: true, trust }, (app, stage) =>
      app.use(traceContext({ locks: stage.locks, trust: 'none' })).route('/x', async (call) => {
        const answer = await fetch(`http://127.0.0.1:${stock.port}/x`, { headers: traceHeaders() });
        call.send({ own: currentTrace()?.traceId, inStock: await answer.json() });
      }),
    );
    const { body } = await edge.get('/x', 'sent', { 'X-Trace-Signature': signed() });
    expect(body).toEqual({ own: expect.stringMatching(minted), inStock: { trace: body.own } });
  });
});
