import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { id as rtracerId } from 'cls-rtracer';
import { currentTrace, type LocksOptions } from 'reenlock';
import { isTrusted } from '../../../src/http/trust.ts';
import { bare } from '../../support/http/bare-app.ts';
import { type App, describeFrameworks } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';

const minted = /^[0-9a-f]{32}$/;
const isFromHere = ({ socket, url }: IncomingMessage): boolean => socket.remoteAddress === '127.0.0.1' && url === '/x';

/** What newer versions of Node answer to more headers than they keep. */
const tooMany = 'HTTP/1.1 431 ';

const reportTrace = (app: App): App =>
  app.route('/x', (call) => call.send({ trace: currentTrace()?.traceId, rtracer: rtracerId() }));

/** Sends header lines as they are, and answers the id that the request got, and the one that it was answered with. */
async function traceOf(stage: ServerStage, headers: readonly string[]): Promise<string> {
  const client = await stage.connect();
  client.request({ path: '/x', headers: [...headers, 'Connection: close'] });
  await client.closed;
  if (client.received.startsWith(tooMany)) return tooMany;
  const [, trace, rtracer] = /\{"trace":"([^"]*)","rtracer":"([^"]*)"\}/.exec(client.received) ?? [];
  const echoed = /^x-trace-id: (.*)\r$/im.exec(client.received)?.[1];
  expect(client.received).toMatch(/^HTTP\/1.1 200 /);
  expect([rtracer, echoed]).toEqual([trace, trace]);
  return String(trace);
}

describeFrameworks('the trace header on a framework', (framework) => {
  it.each<[string, LocksOptions['trust'], string, string]>([
    ['is adopted and echoed', 'internal', 'X-Trace-Id: sent', 'sent'],
    ['is replaced and echoed when it is malformed', 'internal', 'X-Trace-Id: one two', 'malformed'],
    ['is replaced and echoed when its sender is not trusted', 'none', 'X-Trace-Id: sent', 'untrusted'],
  ])('%s', async (_, trust, header, outcome) => {
    const stage = await ServerStage.start(framework, { trust }, reportTrace);
    const refusals: string[] = [];
    stage.locks.on('headerRefused', ({ reason }) => refusals.push(reason));
    const trace = await traceOf(stage, [header]);
    if (outcome !== 'sent') expect(trace).toMatch(minted);
    expect([trace, ...refusals]).toEqual(outcome === 'sent' ? ['sent'] : [trace, outcome]);
  });
});

// The tables need no framework: what reads the headers is the same for all of them.
describe('the trace header', () => {
  const framework = bare;
  afterEach(ServerStage.endAll);

  const longest = 'x'.repeat(128);
  it.each([
    ['a plain id', ['X-Trace-Id: order-42.A_b'], 'order-42.A_b'],
    ['128 characters', [`X-Trace-Id: ${longest}`], longest],
    ['white space around it', ['X-Trace-Id:   padded  '], 'padded'],
    ['a name in other letters', ['x-TRACE-id: same'], 'same'],
    ['a name of every object’s', ['X-Trace-Id: constructor'], 'constructor'],
  ])('A trace header is adopted: %s', async (_, headers, trace) => {
    const stage = await ServerStage.start(framework, reportTrace);
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
    ['with a NUL in UTF-8’s overlong form', ['X-Trace-Id: one\xc0\x80']],
    ['__proto__', ['X-Trace-Id: __proto__']],
  ])('A trace header never fails the request, which gets a new id, if it is %s', async (_, headers) => {
    const stage = await ServerStage.start(framework, reportTrace);
    const refusals: unknown[] = [];
    stage.locks.on('headerRefused', (event) => refusals.push(event));
    expect(await traceOf(stage, headers)).toMatch(minted);
    expect(refusals).toEqual(headers.length === 0 ? [] : [{ reason: 'malformed' }]);
  });

  it.each([
    ['a list', ['one']],
    ['a list of two', ['one', 'two']],
    ['an object', { id: 'one' }],
    ['an object that reads well', { toString: () => 'one' }],
    ['an object without a prototype', Object.create(null)],
    ['a number', 42],
    ['null', null],
  ])('A trace header never fails a mock request, which gets a new id, if it is %s', async (_, value) => {
    const stage = await ServerStage.start(framework, { bare: true }, (app, stage) => {
      const mock = framework.middleware((call, next) => {
        Object.assign(call.req.headers, { 'x-trace-id': value });
        return next();
      });
      reportTrace(app.use(mock, framework.traceContext({ locks: stage.locks })));
    });
    const refusals: unknown[] = [];
    stage.locks.on('headerRefused', (event) => refusals.push(event));
    expect(await traceOf(stage, [])).toMatch(minted);
    expect(refusals).toEqual([{ reason: 'malformed' }]);
  });

  it.each([
    ['valid', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'],
    ['all zeros', `00-${'0'.repeat(32)}-${'0'.repeat(16)}-00`],
    ['garbage', 'one;two'],
  ])('The traceparent header never becomes the trace id, be it %s', async (_, traceparent) => {
    const stage = await ServerStage.start(framework, reportTrace);
    const [first, second] = [
      await traceOf(stage, [`traceparent: ${traceparent}`]),
      await traceOf(stage, [`traceparent: ${traceparent}`]),
    ];
    expect([first, second]).toEqual([expect.stringMatching(minted), expect.stringMatching(minted)]);
    expect(first).not.toBe(second);
    expect(traceparent).not.toContain(first);
  });

  const publicV6 = '2001:db8::1';
  const cases: [string, LocksOptions['trust'], string[], boolean][] = [
    ["'internal', from loopback", 'internal', [], true],
    ['unset, from loopback', undefined, [], true],
    ["'internal', forwarded for a private address", 'internal', ['X-Forwarded-For: 10.1.2.3'], true],
    ["'internal', forwarded for private addresses", 'internal', ['X-Forwarded-For: 192.168.0.9, 172.16.0.1'], true],
    ["'internal', forwarded for a public address", 'internal', ['X-Forwarded-For: 203.0.113.9'], false],
    ["'internal', a public one before private ones", 'internal', ['X-Forwarded-For: 203.0.113.9, 10.0.0.1'], false],
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
    ["'internal', a private address with a port", 'internal', ['X-Forwarded-For: 10.0.0.1:4711'], true],
    ["'internal', a private address and nothing behind a comma", 'internal', ['X-Forwarded-For: 10.0.0.1,'], true],
    ["'internal', Forwarded for private addresses", 'internal', ['Forwarded: for=10.0.0.1, for="10.0.0.2:80"'], true],
    ["'internal', Forwarded for a public address", 'internal', ['Forwarded: proto=https;for=203.0.113.9'], false],
    ["'internal', Forwarded for a public IPv6 address", 'internal', [`Forwarded: For="[${publicV6}]:4711"`], false],
    ["'internal', an address with more behind its bracket", 'internal', ['X-Forwarded-For: [::1]203.0.113.9'], false],
    ["'internal', an IPv6 address with a port", 'internal', ['X-Forwarded-For: [fd12::1]:4711'], true],
    ["'internal', a prefix of no mapped address", 'internal', ['X-Forwarded-For: ::ffff:::1'], false],
    ["'internal', Forwarded for somebody hidden", 'internal', ['Forwarded: for=_hidden'], false],
    ["'internal', Forwarded with spaces", 'internal', ['Forwarded: proto=http; For = 203.0.113.9'], false],
    [
      "'internal', Forwarded for a public address behind a private one",
      'internal',
      ['Forwarded: for=10.0.0.1, for="203.0.113.9:4711"'],
      false,
    ],
    [
      "'internal', private by one header and public by another",
      'internal',
      ['X-Forwarded-For: 10.0.0.1', 'X-Real-IP: 203.0.113.9'],
      false,
    ],
    ["'all', forwarded for a public address", 'all', ['X-Forwarded-For: 203.0.113.9'], true],
    ["'none', from loopback", 'none', [], false],
    ['a predicate that says yes', () => true, ['X-Forwarded-For: 203.0.113.9'], true],
    ['a predicate that looks at the raw request', isFromHere, [], true],
    ['a predicate that says no', () => false, [], false],
    ['a predicate that says neither yes nor no', () => 'yes' as never, [], false],
  ];
  it.each(cases)('Trust decides what is adopted: trust %s', async (_, trust, headers, isAdopted) => {
    const stage = await ServerStage.start(framework, { trust }, reportTrace);
    const refusals: unknown[] = [];
    stage.locks.on('headerRefused', (event) => refusals.push(event));
    const trace = await traceOf(stage, ['X-Trace-Id: sent', ...headers]);
    if (isAdopted) expect(trace).toBe('sent');
    else expect(trace).toMatch(minted);
    expect(refusals).toEqual(isAdopted ? [] : [{ reason: 'untrusted' }]);
  });

  it.each([
    ['10.1.2.3', true],
    ['::1', true],
    ['fe80::1%eth0', true],
    ['::ffff:10.1.2.3', true],
    ['203.0.113.9', false],
    ['0.0.0.0', false],
    ['::ffff:203.0.113.9', false],
  ])('Trust decides by the peer’s own address: %s', async (address, isAdopted) => {
    const stage = await ServerStage.start(framework, reportTrace);
    stage.server.on('connection', (socket) => Object.defineProperty(socket, 'remoteAddress', { value: address }));
    const trace = await traceOf(stage, ['X-Trace-Id: sent']);
    expect(trace === 'sent').toBe(isAdopted);
  });

  it.each([
    ['by default', undefined, 1_000],
    ['by its maxHeadersCount', 64, 64],
    ['by one that is a multiple of those that Node reads at a time', 62, 62],
  ])(
    'A trace header is not adopted if the server drops headers, %s: one of them may be the proxy’s',
    async (_, most, count) => {
      const stage = await ServerStage.start(framework, reportTrace);
      if (most !== undefined) stage.server.maxHeadersCount = most;
      const filled = (more: number): string[] => Array.from({ length: count - 4 + more }, () => 'a:');
      const forwarded = (more: number): string[] => [...filled(more), 'X-Forwarded-For: 203.0.113.9'];
      expect(await traceOf(stage, ['X-Trace-Id: sent', ...forwarded(0)])).toMatch(minted);
      for (const more of [1, 2, 100]) {
        const trace = await traceOf(stage, ['X-Trace-Id: sent', ...forwarded(more)]);
        if (trace !== tooMany) expect(trace).toMatch(minted);
      }
      expect(await traceOf(stage, ['X-Trace-Id: sent', ...filled(0)])).toBe('sent');
    },
  );

  it('A trace header is adopted with any number of headers if the server drops none', async () => {
    const stage = await ServerStage.start(framework, reportTrace);
    stage.server.maxHeadersCount = 0;
    expect(await traceOf(stage, ['X-Trace-Id: sent', ...Array.from({ length: 2_000 }, () => 'a:')])).toBe('sent');
  });

  it.each([
    ['keeps', () => Promise.resolve(true)],
    ['breaks', () => Promise.reject(new Error('down'))],
  ])('A request fails if trust returns a promise, which it %s', async (_, trust) => {
    const stage = await ServerStage.start(framework, { trust: trust as never }, reportTrace);
    const { status } = await stage.get('/x', 'sent');
    expect(status).toBe(500);
  });

  it.each([
    ['is adopted from a unix socket', {}, true],
    ['is adopted from a unix socket for a private address', { 'X-Forwarded-For': '10.1.2.3' }, true],
    ['is not adopted from a unix socket for a public address', { Forwarded: 'for=203.0.113.9' }, false],
  ])('%s', async (_, headers, isAdopted) => {
    const dir = mkdtempSync(join(tmpdir(), 'reenlock-unix-'));
    const socketPath = join(dir, 'server');
    const stage = await ServerStage.start(framework, reportTrace);
    stage.server.close().listen(socketPath);
    await once(stage.server, 'listening');
    const sent = request({ socketPath, path: '/x', headers: { 'X-Trace-Id': 'sent', ...headers }, agent: false }).end();
    const [answer] = await once(sent, 'response');
    expect(answer.headers['x-trace-id']).toEqual(isAdopted ? 'sent' : expect.stringMatching(minted));
    answer.resume();
    await once(answer, 'close');
    rmSync(dir, { recursive: true });
  });
});

describe('a peer’s address', () => {
  const isInside = (remoteAddress: string) =>
    isTrusted({ headers: {} } as never, { remoteAddress } as never, 'internal');

  it.each([
    ['127.0.0.0', '127.255.255.255', '126.255.255.255', '128.0.0.0'],
    ['10.0.0.0', '10.255.255.255', '9.255.255.255', '11.0.0.0'],
    ['172.16.0.0', '172.31.255.255', '172.15.255.255', '172.32.0.0'],
    ['192.168.0.0', '192.168.255.255', '192.167.255.255', '192.169.0.0'],
    ['100.64.0.0', '100.127.255.255', '100.63.255.255', '100.128.0.0'],
    ['169.254.0.0', '169.254.255.255', '169.253.255.255', '169.255.0.0'],
    ['::1', '::1', '::', '::2'],
    ['fc00::', 'fdff:ffff::ffff', 'fbff:ffff::ffff', 'fe00::'],
    ['fe80::', 'febf:ffff::ffff', 'fe7f:ffff::ffff', 'fec0::'],
  ])('A peer’s address is inside from %s to %s, and neither before nor after', (first, last, before, after) => {
    expect([first, last, before, after].map(isInside)).toEqual([true, true, false, false]);
  });
});
