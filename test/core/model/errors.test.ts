import * as errors from '../../../src/core/index.ts';

const cause = new Error('ECONNREFUSED redis://user:secret@host');
const key = 'secret-key-42';
const details = { key, cause };

/** Every error: how it is built, and what an HTTP framework sees of it. */
const table = [
  ['LockConfigError', () => new errors.LockConfigError('words', details), 'ERR_LOCK_CONFIG', 500, false, false],
  ['LockKeyError', () => new errors.LockKeyError('words', details), 'ERR_LOCK_KEY', 400, true, false],
  [
    'LockTimeoutError',
    () => new errors.LockTimeoutError({ ...details, waitedMs: 99.6, retryAfterMs: 2_000.1 }),
    'ERR_LOCK_TIMEOUT',
    423,
    true,
    true,
  ],
  ['LockLimitError', () => new errors.LockLimitError('words', details), 'ERR_LOCK_LIMIT', 503, true, true],
  ['LockAbortedError', () => new errors.LockAbortedError(details), 'ERR_LOCK_ABORTED', 499, true, false],
  [
    'DeadlockError',
    () => new errors.DeadlockError({ ...details, cycle: [{ traceId: 'secret-trace', key }] }),
    'ERR_LOCK_DEADLOCK',
    409,
    true,
    true,
  ],
  [
    'LockLostError',
    () => new errors.LockLostError('words', { ...details, fence: 7 }),
    'ERR_LOCK_LOST',
    503,
    false,
    false,
  ],
  ['LockNotHeldError', () => new errors.LockNotHeldError(details), 'ERR_LOCK_NOT_HELD', 500, false, false],
  ['LockScopeError', () => new errors.LockScopeError('words', details), 'ERR_LOCK_SCOPE', 500, false, false],
  [
    'LockStoreError',
    () => new errors.LockStoreError('words', { ...details, outcome: 'unknown' }),
    'ERR_LOCK_STORE',
    503,
    false,
    true,
  ],
  [
    'DeadlockError',
    () => new errors.DeadlockError({ ...details, cycle: [{ traceId: 'secret-owner', key }] }, 'words'),
    'ERR_LOCK_DEADLOCK',
    409,
    true,
    true,
  ],
  ['LocksClosedError', () => new errors.LocksClosedError(details), 'ERR_LOCK_CLOSED', 503, true, true],
] as const;

const refusals = ['LockTimeoutError', 'LockLimitError', 'LockAbortedError', 'DeadlockError', 'LocksClosedError'];
const withRetryAfter = {
  LockTimeoutError: '3',
  LockLimitError: '1',
  LockStoreError: '1',
  LocksClosedError: '1',
} as const;

describe.each(table)('%s', (name, build, code, status, expose, retryable) => {
  it('A lock error has the shape that http-errors give an error', () => {
    const error = build();
    expect(error).toBeInstanceOf(errors.LockError);
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ name, code, status, statusCode: status, expose, retryable });
  });

  it('A lock error has the headers of its response', () => {
    const value = (withRetryAfter as Record<string, string>)[name];
    expect(build().headers).toEqual(value === undefined ? {} : { 'Retry-After': value });
  });

  it('A lock error shows its key to loggers, and shows neither that nor its cause to a client', () => {
    const error = build();
    expect(error.key).toBe(key);
    expect(error.cause).toBe(cause);
    expect({ ...error }).toMatchObject({ key });
    for (const shown of [error.message, JSON.stringify(error), String(error)]) {
      expect(shown).not.toContain(key);
      expect(shown).not.toContain('secret');
    }
  });

  it(refusals.includes(name) ? 'has a stack of one line: it is an answer, not a bug' : 'has a whole stack', () => {
    const { stack = '', message } = build();
    expect(stack.split('\n')[0]).toBe(`${name}: ${message}`);
    if (refusals.includes(name)) expect(stack).toBe(`${name}: ${message}`);
    else expect(stack).toContain('errors.test.ts');
  });

  it('A lock error is one to another installed copy, too', () => {
    const error = build();
    expect(errors.isLockError(error)).toBe(true);
    jest.isolateModules(() => {
      const copy = jest.requireActual<typeof errors>('../../../src/core/index.ts');
      expect(copy.LockError).not.toBe(errors.LockError);
      expect(error).not.toBeInstanceOf(copy.LockError);
      expect(copy.isLockError(error)).toBe(true);
    });
  });
});

describe('isLockError', () => {
  it.each([undefined, null, 5, 'ERR_LOCK_KEY', new Error('no'), {}, { code: 'ERR_LOCK_KEY' }, errors.LockError])(
    'isLockError is false for %p',
    (value) => {
      expect(errors.isLockError(value)).toBe(false);
    },
  );
});

describe('LockTimeoutError', () => {
  it('LockTimeoutError has in whole milliseconds how long it waited, and when to try again', () => {
    const error = new errors.LockTimeoutError({ key, waitedMs: 99.6, retryAfterMs: 2_000.1 });
    expect(error).toMatchObject({ waitedMs: 100, retryAfterMs: 2_001 });
    expect(error.message).toBe('The lock was not free within 100 ms');
  });

  it.each([
    [0, '1'],
    [-5, '1'],
    [1, '1'],
    [1_000, '1'],
    [1_001, '2'],
    [30_000, '30'],
  ])('LockTimeoutError turns %p ms into whole seconds, never zero: %s', (retryAfterMs, header) => {
    const error = new errors.LockTimeoutError({ waitedMs: 0, retryAfterMs });
    expect(error.headers).toEqual({ 'Retry-After': header });
  });
});

describe('LockLostError', () => {
  it('LockLostError has the fence, and the value of a routine where nothing serialises it', () => {
    const error = new errors.LockLostError('words', { key, fence: 7, value: { card: '4111' } });
    expect(error).toMatchObject({ fence: 7, value: { card: '4111' } });
    expect(JSON.stringify(error)).not.toContain('4111');
  });
});

describe('LockStoreError', () => {
  it.each(['not-applied', 'unknown'] as const)('LockStoreError has its outcome: %s', (outcome) => {
    expect(new errors.LockStoreError('words', { outcome }).outcome).toBe(outcome);
  });
});

describe('A lock error without a cause', () => {
  it('A lock error has no own cause if none was given', () => {
    expect('cause' in new errors.LockKeyError('words')).toBe(false);
    expect(new errors.LockKeyError('words').key).toBeUndefined();
  });
});
