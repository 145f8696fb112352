import { createLocks, LockConfigError, type Locks, type LocksOptions, MemoryStore } from '../../../src/core/index.ts';
import { checkValue, narrowed, typed } from '../../../src/core/model/validate.ts';
import { everyRow } from '../../support/rows.ts';
import { isAmong, locksTable, odd } from './option-table.ts';

const created: Locks[] = [];
afterEach(async () => {
  for (const locks of created.splice(0)) await locks.close();
});

function build(options: unknown): Locks {
  const locks = createLocks(options as LocksOptions);
  created.push(locks);
  return locks;
}

const storeWords = 'a lock store with its methods and `capabilities`, such as a `RedisStore`';
const trustWords = "'internal', 'all', 'none', a function of the request, or `{ secrets, audience }`";

describe('createLocks', () => {
  it.each(locksTable)('createLocks refuses each invalid value of %s that is not %s', async (name, expected, taken) => {
    const refused = odd.filter(([value]) => !isAmong(taken, value));
    await everyRow(
      refused,
      ([, got]) => got,
      ([value, got]) => {
        const message = `Expected \`${name}\` to be ${expected}, got ${got}`;
        expect(() => build({ [name]: value })).toThrow(new LockConfigError(message));
        expect(() => build({ [name]: value })).toThrow(LockConfigError);
      },
    );
  });

  it.each([
    ['store', {}, storeWords, 'a value of type object'],
    ['store', null, storeWords, '`null` (null)'],
    ['store', { acquire: () => {} }, storeWords, 'a value of type object'],
    ['store', Object.assign(new MemoryStore(), { capabilities: undefined }), storeWords, 'a value of type object'],
    ['store', MemoryStore, storeWords, 'a value of type function'],
    ['trust', 'everybody', trustWords, "'everybody'"],
    ['trust', true, trustWords, 'a value of type boolean'],
    ['trust', null, trustWords, 'a value of type null'],
    ['trust', [], trustWords, 'a value of type array'],
    ['headerName', 'X Trace', 'a header name', '`X Trace` (string)'],
    ['headerName', 'X-Trace\r\nSet-Cookie', 'a header name', '`X-Trace\r\nSet-Cookie` (string)'],
    ['headerName', '', 'a header name', '`` (string)'],
    ['headerName', '__PROTO__', 'a header name', '`__PROTO__` (string)'],
    ['headerName', 'Constructor', 'a header name', '`Constructor` (string)'],
    ['headerName', 'x'.repeat(129), 'a header name', `\`${'x'.repeat(100)}\` (string)`],
  ])('createLocks refuses %s: %j', (name, value, expected, got) => {
    expect(() => build({ [name]: value })).toThrow(
      new LockConfigError(`Expected \`${name}\` to be ${expected}, got ${got}`),
    );
  });

  it.each([
    ['trust', 'all'],
    ['trust', 'none'],
    ['trust', () => true],
    ['headerName', 'x-request-id'],
    ['store', new MemoryStore()],
    ['leaseMs', 100],
    ['drainMs', 0],
    ['waitMs', 5],
    ['leaseMs', 300_000],
    ['maxHoldMs', 2 ** 31 - 1],
    ['renew', false],
  ])('createLocks accepts %s: %s', (name, value) => {
    expect(build({ [name]: value }).settings).toMatchObject({ [name]: value });
  });

  it.each(['leaseMs', 'maxHoldMs', 'claimMs', 'pollMs', 'storeTimeoutMs', 'drainMs', 'abortGraceMs'])(
    'createLocks asks whether seconds were meant by `%s: 30`',
    (name) => {
      expect(() => build({ [name]: 30 })).toThrow(/, got `30` \(number\): did you mean seconds\? Write `30_000`$/);
    },
  );

  it.each([null, 'options', 5, [], () => {}])('createLocks refuses %p instead of options', (options) => {
    expect(() => build(options)).toThrow(/^Expected the options of createLocks to be an object, got /);
  });

  it.each([
    ['a promise of them', Promise.resolve({ leaseMs: 1_000 })],
    ['a map', new Map([['leaseMs', 1_000]])],
    ['a signal', new AbortController().signal],
    ['a date', new Date(0)],
    [
      'an object of getters',
      new (class {
        get leaseMs(): number {
          return 1_000;
        }
      })(),
    ],
  ])('createLocks refuses %s in place of options, since it would be ignored', (_, options) => {
    expect(() => build(options)).toThrow(
      new LockConfigError(
        "Expected the options of createLocks to be an object's own properties, got an object that has none",
      ),
    );
  });

  const url = 'redis://locks:pass\nword@db.internal';
  it.each([
    ['a store', { store: url }],
    ['options', url],
  ])('createLocks shows no password of a connection string in the place of %s', (_, options) => {
    expect(() => build(options)).toThrow(/^Expected .*, got `redis:\/\/…` \(string\)$/);
  });

  it('createLocks names the class of what was given instead of options', () => {
    expect(() => build(new MemoryStore())).toThrow(
      /got `\w+` of an object of class MemoryStore\. Did you mean `createLocks\(\{ store \}\)`\?$/,
    );
    expect(() => build(Object.create({ of: 'no class' }, { waitMS: { value: 1, enumerable: true } }))).toThrow(
      /got `waitMS`$/,
    );
  });

  it.each([
    ['nothing', undefined],
    ['an empty object', {}],
    ['an empty object without a prototype', Object.create(null)],
    ['an object without a prototype', Object.assign(Object.create(null), { leaseMs: 10_000 })],
    [
      'an instance of a class, with the options as its fields',
      new (class {
        leaseMs = 10_000;
      })(),
    ],
  ])('createLocks accepts %s', (_, options) => {
    expect(build(options).settings.leaseMs).toBe(10_000);
  });

  it.each(['leaseMS', 'toString', 'constructor', 'hasOwnProperty', '__proto__'])(
    'createLocks refuses the option %s',
    (name) => {
      const options: unknown = JSON.parse(`{ ${JSON.stringify(name)}: 1 }`);
      const refused = expect(() => build(options));
      refused.toThrow(LockConfigError);
      refused.toThrow(/^Expected the options of createLocks to be among `.*`leaseMs`.*, got `/);
      refused.toThrow(`got \`${name}\``);
    },
  );

  it('createLocks refuses a lease longer than a hold may last, and names the option to raise', () => {
    expect(() => build({ leaseMs: 2_000, maxHoldMs: 1_000 })).toThrow(
      new LockConfigError('Expected `leaseMs` to be `maxHoldMs` (1000) at most, got `2000`: raise `maxHoldMs` with it'),
    );
  });

  it('createLocks has the documented defaults', () => {
    expect(build(undefined).settings).toEqual({
      instance: expect.stringMatching(/^.+:\d+$/),
      waitMs: 15_000,
      leaseMs: 10_000,
      reentrant: 'trace',
      renew: true,
      maxHoldMs: 300_000,
      claimMs: 3_000,
      pollMs: 1_000,
      storeTimeoutMs: 2_000,
      drainMs: 10_000,
      maxWaitersPerKey: 1_000,
      maxWaiters: 10_000,
      maxReentry: 64,
      headerName: 'X-Trace-Id',
      bareTraceId: 'owner',
      abortGraceMs: 30_000,
      store: undefined,
      trust: undefined,
    });
  });

  it('createLocks takes undefined for not given', () => {
    const options = Object.fromEntries(locksTable.map(([name]) => [name, undefined]));
    expect(build(options).settings).toEqual(build({}).settings);
  });

  it('createLocks describes a refused value as its rule does, even where the rule was narrowed', () => {
    const secret = narrowed(
      { expected: 'a secret', got: typed, accepts: (value) => typeof value === 'string' },
      () => false,
    );
    expect(() => checkValue('it', 'my secret', secret)).toThrow(
      'Expected it to be a secret, got a value of type string',
    );
  });

  it('createLocks freezes its settings, and a later change of the options object changes nothing', () => {
    const options: { leaseMs: number } = { leaseMs: 1_000 };
    const { settings } = build(options);
    options.leaseMs = 5;
    expect(settings.leaseMs).toBe(1_000);
    expect(Object.isFrozen(settings)).toBe(true);
    expect(() => Object.assign(settings, { leaseMs: 5 })).toThrow(TypeError);
  });
});
