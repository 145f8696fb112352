import {
  createLocks,
  currentTrace,
  getLock,
  isLockError,
  LockAbortedError,
  LockConfigError,
  LockError,
  type Locks,
  type LocksOptions,
  LockTimeoutError,
  lock,
  type RunInTraceOptions,
  runInTrace,
  traceHeaders,
} from '../../../src/core/index.ts';
import { TraceSignatures } from '../../../src/core/model/signature.ts';

const secrets = ['a secret of thirty-two bytes or more'];
const signed = { secrets, audience: 'orders' };
const open: Locks[] = [];
afterEach(async () => {
  for (const each of open.splice(0)) await each.close({ drainMs: 0 });
});

/** Builds a `Locks` that notes why it refused a header. */
function build(options: LocksOptions = {}): { locks: Locks; refused: string[] } {
  const locks = createLocks(options);
  const refused: string[] = [];
  locks.on('headerRefused', ({ reason }) => refused.push(reason));
  open.push(locks);
  return { locks, refused };
}

const sent = (headers: Record<string, string>, init: RequestInit = {}): Request =>
  new Request('http://localhost/orders/1', { ...init, headers });

/** The trace that a request with this header runs in. */
function traceOf(options: RunInTraceOptions<Request>, header = 'X-Trace-Id'): Promise<string | undefined> {
  return runInTrace(() => currentTrace()?.traceId, { request: sent({ [header]: 'named' }), ...options });
}

describe('runInTrace for a fetch request', () => {
  it.each<[string, LocksOptions['trust'], string | undefined]>([
    ['all', 'all', undefined],
    ['internal: a fetch request does not tell its peer', 'internal', 'untrusted'],
    ['none', 'none', 'untrusted'],
    ['not set', undefined, 'untrusted'],
    ['a predicate, which is for requests of node:http', () => true, 'untrusted'],
    ['secrets, and the request has no signature', signed, 'unsigned'],
  ])('The trust of the Locks decides whether the id of a fetch request is adopted: %s', async (_, trust, reason) => {
    const { locks, refused } = build({ trust });
    const id = await traceOf({ locks });
    expect([id === 'named', refused]).toEqual(reason === undefined ? [true, []] : [false, [reason]]);
    if (reason !== undefined) expect(id).toMatch(/^[\da-f]{32}$/);
  });

  it('An own trust of runInTrace is asked instead of that of the Locks', async () => {
    const { locks } = build({ trust: 'none' });
    const asked: string[] = [];
    const predicate = ({ url }: Request): boolean => asked.push(url) > 0;
    expect(await traceOf({ locks, trust: predicate })).toBe('named');
    expect(asked).toEqual(['http://localhost/orders/1']);
    expect(await traceOf({ locks, trust: () => Promise.resolve(true) as unknown as boolean })).not.toBe('named');
    expect(await traceOf({ locks, trust: 'all' })).toBe('named');
    expect(await traceOf({ locks: build({ trust: 'all' }).locks, trust: 'none' })).not.toBe('named');
  });

  it('A signed id is adopted, and the headers for called services are signed, too', async () => {
    const signature = new TraceSignatures(signed).sign('named', Date.now());
    const request = sent({ 'X-Trace-Id': 'named', 'X-Trace-Signature': signature });
    for (const options of [{ locks: build({ trust: signed }).locks }, { locks: build().locks, trust: signed }]) {
      const headers = await runInTrace(() => traceHeaders(), { request, ...options });
      expect(headers).toEqual({
        'X-Trace-Id': 'named',
        'X-Trace-Branch': 'named',
        'X-Trace-Signature': expect.stringMatching(/^v2\./),
      });
    }
  });

  it('A malformed id fails no request: a new one is minted, and an event is emitted', async () => {
    const { locks, refused } = build({ trust: 'all' });
    const id = await runInTrace(() => currentTrace()?.traceId, { locks, request: sent({ 'X-Trace-Id': 'a b' }) });
    expect([id, refused]).toEqual([expect.stringMatching(/^[\da-f]{32}$/), ['malformed']]);
  });

  it('The header has the name that the Locks give it', async () => {
    const { locks } = build({ trust: 'all', headerName: 'X-Request-Id' });
    expect(await traceOf({ locks }, 'X-Request-Id')).toBe('named');
    const headers = await runInTrace(() => traceHeaders(), { locks, request: sent({}) });
    const { 'X-Request-Id': id } = headers;
    expect(headers).toEqual({ 'X-Request-Id': id, 'X-Trace-Branch': id });
  });

  it('An explicit trace id, and the scope around, go before the header', async () => {
    const { locks } = build({ trust: 'all' });
    expect(await traceOf({ locks, traceId: 'mine' })).toBe('mine');
    expect(await runInTrace(() => traceOf({ locks }), { locks, traceId: 'outer' })).toBe('outer');
  });

  it('A client that leaves ends the wait for a lock, and keeps a routine from beginning', async () => {
    const { locks } = build();
    const client = new AbortController();
    const request = sent({}, { signal: client.signal });
    const waiting = new Promise((resolve) => locks.on('waiting', resolve));
    await runInTrace(
      async () => {
        await lock.acquire('order');
        const waiter = runInTrace(() => getLock('order').acquire({ reentrant: false }), {
          locks,
          request,
          traceId: 'waiter',
        });
        await waiting;
        client.abort();
        await expect(waiter).rejects.toThrow(LockAbortedError);
      },
      { locks },
    );
    const routine = jest.fn();
    await expect(runInTrace(routine, { locks, request })).rejects.toThrow(LockAbortedError);
    expect(routine).not.toHaveBeenCalled();
  });

  it.each([
    ['request', {}, 'a fetch `Request`'],
    ['request', 'x', 'a fetch `Request`'],
    ['trust', 'inside', "'internal', 'all', 'none', a function of the request, or `{ secrets, audience }`"],
  ])('runInTrace refuses a bad `%s`: %j', async (name, value, expected) => {
    const options = { locks: build().locks, [name]: value } as RunInTraceOptions;
    const error: unknown = await runInTrace(() => {}, options).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(LockConfigError);
    expect((error as Error).message).toContain(`Expected \`${name}\` to be ${expected}, got`);
  });
});

describe('The response of a lock error', () => {
  it('A lock error makes a response with its status, its headers and a problem document', async () => {
    const response = new LockTimeoutError({ key: 'secret', waitedMs: 20, retryAfterMs: 1_500 }).getResponse();
    const { status, headers } = response;
    expect([status, headers.get('retry-after'), headers.get('content-type')]).toEqual([
      423,
      '2',
      'application/problem+json',
    ]);
    expect(await response.json()).toEqual({
      type: 'about:blank',
      title: 'Locked',
      status: 423,
      detail: 'The lock was not free within 20 ms',
      code: 'ERR_LOCK_TIMEOUT',
    });
  });

  it('A message that is not for clients is not in the response', async () => {
    const error = await runInTrace(() => lock.acquire(''), { locks: build().locks }).catch((error: unknown) => error);
    expect(isLockError(error) && (await error.getResponse().json())).toMatchObject({
      code: 'ERR_LOCK_KEY',
      status: 400,
    });
    const response = new LockConfigError('redis://user:pa55word@10.0.0.7').getResponse();
    expect(response).toBeInstanceOf(Response);
    expect(await response.text()).not.toContain('redis');
    expect(LockError.prototype).toHaveProperty('getResponse');
  });
});
