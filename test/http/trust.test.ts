import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { id as rtracerId } from 'cls-rtracer';
import { currentTrace, getLock, type LocksOptions } from 'reenlock';
import { type App, describeFrameworks } from '../helpers/frameworks.ts';
import { watchLeaks } from '../helpers/leaks.ts';
import { gate, Stage } from '../helpers/stage.ts';

watchLeaks();

const minted = /^[0-9a-f]{32}$/;

const reportTrace = (app: App): App =>
  app.route('/x', (call) => call.send({ trace: currentTrace()?.traceId, rtracer: rtracerId() }));

/** Sends header lines as they are, and answers the id that the request got, and the one that it was answered with. */
async function traceOf(stage: Stage, headers: readonly string[]): Promise<string> {
  const client = await stage.connect();
  client.request({ path: '/x', headers: [...headers, 'Connection: close'] });
  await client.closed;
  const [, trace, rtracer] = /\{"trace":"([^"]*)","rtracer":"([^"]*)"\}/.exec(client.received) ?? [];
  const echoed = /^x-trace-id: (.*)\r$/im.exec(client.received)?.[1];
  expect(client.received).toMatch(/^HTTP\/1.1 200 /);
  expect([rtracer, echoed]).toEqual([trace, trace]);
  return String(trace);
}

describeFrameworks('the trace header', (framework) => {
  afterEach(Stage.endAll);

  const longest = 'x'.repeat(128);
  it.each([
    ['a plain id', ['X-Trace-Id: order-42.A_b'], 'order-42.A_b'],
    ['128 characters', [`X-Trace-Id: ${longest}`], longest],
    ['white space around it', ['X-Trace-Id:   padded  '], 'padded'],
    ['a name in other letters', ['x-TRACE-id: same'], 'same'],
    ['__proto__, a name like any other', ['X-Trace-Id: __proto__'], '__proto__'],
  ])('is adopted: %s', async (_, headers, trace) => {
    const stage = await Stage.start(framework, reportTrace);
    expect(await traceOf(stage, headers)).toBe(trace);
  });

  it.each([
    ['absent', []],
    ['empty', ['X-Trace-Id: ']],
    ['there twice', ['X-Trace-Id: one', 'X-Trace-Id: two']],
    ['129 characters long', [`X-Trace-Id: ${longest}x`]],
    ['8 KB long', [`X-Trace-Id: ${'x'.repeat(8192)}`]],
    ['not ASCII', ['X-Trace-Id: \xfcber']],
    ['an emoji', ['X-Trace-Id: \xf0\x9f\x94\x92']],
    ['with a tab', ['X-Trace-Id: one\ttwo']],
    ['with a space', ['X-Trace-Id: one two']],
    ['with a semicolon', ['X-Trace-Id: one;two']],
    ['with braces', ['X-Trace-Id: {one}']],
    ['with a colon', ['X-Trace-Id: one:two']],
  ])('never fails the request, which gets a new id, when it is %s', async (_, headers) => {
    const stage = await Stage.start(framework, reportTrace);
    const refusals: unknown[] = [];
    stage.locks.on('headerRefused', (event) => refusals.push(event));
    expect(await traceOf(stage, headers)).toMatch(minted);
    expect(refusals).toEqual(headers.length === 0 ? [] : [{ reason: 'malformed' }]);
  });

  it('is not the traceparent header', async () => {
    const stage = await Stage.start(framework, reportTrace);
    const traceparent = 'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    expect(await traceOf(stage, [traceparent])).not.toBe('0af7651916cd43dd8448eb211c80319c');
  });

  const publicV6 = '2001:db8::1';
  const cases: [string, LocksOptions['trust'], string[], boolean][] = [
    ["'internal', from loopback", 'internal', [], true],
    ['unset, from loopback', undefined, [], true],
    ["'internal', forwarded for a private address", 'internal', ['X-Forwarded-For: 10.1.2.3'], true],
    ["'internal', forwarded for private addresses", 'internal', ['X-Forwarded-For: 192.168.0.9, 172.16.0.1'], true],
    ["'internal', forwarded for a public address", 'internal', ['X-Forwarded-For: 203.0.113.9'], false],
    ["'internal', a public one among private", 'internal', ['X-Forwarded-For: 10.0.0.1, 203.0.113.9'], false],
    [
      "'internal', a public one in a second header",
      'internal',
      ['X-Forwarded-For: 10.0.0.1', 'X-Forwarded-For: 8.8.8.8'],
      false,
    ],
    ["'internal', forwarded for garbage", 'internal', ['X-Forwarded-For: unknown'], false],
    ["'internal', a public address with a port", 'internal', ['X-Forwarded-For: 203.0.113.9:4711'], false],
    ["'internal', a public IPv6 address", 'internal', [`X-Forwarded-For: ${publicV6}`], false],
    ["'internal', a public address mapped to IPv6", 'internal', ['X-Forwarded-For: ::ffff:203.0.113.9'], false],
    ["'internal', a private address mapped to IPv6", 'internal', ['X-Forwarded-For: ::ffff:10.0.0.1'], true],
    ["'internal', X-Real-IP of a public address", 'internal', ['X-Real-IP: 203.0.113.9'], false],
    ["'internal', X-Real-IP of a private address", 'internal', ['X-Real-IP: 10.0.0.1'], true],
    ["'internal', Forwarded for a private address", 'internal', ['Forwarded: for=10.0.0.1;proto=https'], true],
    ["'internal', Forwarded for a public address", 'internal', ['Forwarded: proto=https;for=203.0.113.9'], false],
    ["'internal', Forwarded for a public IPv6 address", 'internal', [`Forwarded: For="[${publicV6}]:4711"`], false],
    ["'internal', Forwarded for somebody hidden", 'internal', ['Forwarded: for=_hidden'], false],
    ["'all', forwarded for a public address", 'all', ['X-Forwarded-For: 203.0.113.9'], true],
    ["'none', from loopback", 'none', [], false],
    ['a predicate that says yes', () => true, ['X-Forwarded-For: 203.0.113.9'], true],
    ['a predicate that says no', () => false, [], false],
  ];
  it.each(cases)('by trust %s', async (_, trust, headers, isAdopted) => {
    const stage = await Stage.start(framework, reportTrace, { trust });
    const refusals: unknown[] = [];
    stage.locks.on('headerRefused', (event) => refusals.push(event));
    const trace = await traceOf(stage, ['X-Trace-Id: sent', ...headers]);
    if (isAdopted) expect(trace).toBe('sent');
    else expect(trace).toMatch(minted);
    expect(refusals).toEqual(isAdopted ? [] : [{ reason: 'untrusted' }]);
  });

  it('is adopted from a unix socket', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'reenlock-unix-'));
    const socketPath = join(dir, 'server');
    const stage = await Stage.start(framework, reportTrace);
    stage.server.close().listen(socketPath);
    await once(stage.server, 'listening');
    const sent = request({ socketPath, path: '/x', headers: { 'X-Trace-Id': 'sent' }, agent: false }).end();
    const [answer] = await once(sent, 'response');
    expect(answer.headers['x-trace-id']).toBe('sent');
    answer.resume();
    await once(answer, 'close');
    rmSync(dir, { recursive: true });
  });
});

describeFrameworks('a client that is not trusted', (framework) => {
  const { lockOn } = framework;
  afterEach(Stage.endAll);

  it('waits, though it quotes the id of the request that holds the key', async () => {
    const go = gate();
    const stage = await Stage.start(framework, (app, stage) =>
      app.route('/:who', lockOn('k'), async (call) => {
        stage.note(`${call.params.who} in`);
        if (call.params.who === 'first') await go;
        call.send('done');
      }),
    );
    const first = stage.get('/first', 'live-holder');
    await stage.until('first in');
    const thief = stage.get('/thief', 'live-holder', { 'X-Forwarded-For': '203.0.113.9' });
    const friend = stage.get('/friend', 'live-holder');
    // The trusted one is the same trace: it re-enters.
    await stage.until('friend in');
    await friend;
    expect(await stage.waiters('k')).toEqual([expect.stringMatching(minted)]);
    expect(stage.journal).not.toContain('thief in');
    go.open();
    await Promise.all([first, thief]);
    await stage.free('k');
  });

  it('spends once what it has once, though it sends its own id twice in parallel', async () => {
    let balance = 100;
    const stage = await Stage.start(framework, (app) =>
      app.route('/wallet', lockOn('wallet'), async (call) => {
        const seen = balance;
        await getLock('wallet').run(() => new Promise((resolve) => setImmediate(resolve)));
        if (seen >= 80) balance = seen - 80;
        call.send({ paid: seen >= 80 });
      }),
    );
    const headers = { 'X-Forwarded-For': '203.0.113.9' };
    const answers = await Promise.all([stage.get('/wallet', 'mine', headers), stage.get('/wallet', 'mine', headers)]);
    expect(answers.filter(({ body }) => body.paid)).toHaveLength(1);
    expect(balance).toBe(20);
  });

  it('and with `owner: "request"` a trusted one of the same trace waits, too', async () => {
    const go = gate();
    const stage = await Stage.start(framework, (app, stage) =>
      app.route('/:who', lockOn('k', { owner: 'request' }), async (call) => {
        stage.note(`${call.params.who} in`);
        if (call.params.who === 'first') await go;
        call.send(String(currentTrace()?.traceId));
      }),
    );
    const waited = new Promise<void>((resolve) => stage.locks.on('waiting', () => resolve()));
    const first = stage.get('/first', 'shared');
    await stage.until('first in');
    const second = stage.get('/second', 'shared');
    await waited;
    expect(stage.journal).not.toContain('second in');
    go.open();
    expect([(await first).text, (await second).text]).toEqual(['shared', 'shared']);
  });
});
