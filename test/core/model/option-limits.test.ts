import * as express from 'reenlock/express';
import * as koa from 'reenlock/koa';
import {
  type AcquireOptions,
  createLocks,
  getLock,
  Locked,
  type Locks,
  type LocksOptions,
  lock,
} from '../../../src/core/index.ts';
import { everyRow } from '../../support/rows.ts';
import { coreTests } from '../../support/stores/set-up.ts';

const setUp = coreTests();

const max = 2 ** 31 - 1;

/** A numeric option: the least and the most that it takes, and what it takes beside. */
interface Numeric {
  readonly min: number;
  readonly max: number;
  readonly also?: readonly unknown[];
  /** Other options that the greatest and the least value need. */
  readonly beside?: object;
}

const acquireNumbers: Readonly<Record<string, Numeric>> = {
  waitMs: { min: 0, max, also: [Number.POSITIVE_INFINITY] },
  leaseMs: { min: 100, max, beside: { maxHoldMs: max } },
  maxHoldMs: { min: 100, max, beside: { leaseMs: 100 } },
  priority: { min: -100, max: 100 },
  permits: { min: 1, max: 1000 },
};

const { waitMs: _waitMs, ...tryNumbers } = acquireNumbers;
const { priority: _, permits: _permits, ...shared } = acquireNumbers;
const locksNumbers: Readonly<Record<string, Numeric>> = {
  ...shared,
  claimMs: { min: 100, max },
  pollMs: { min: 100, max },
  storeTimeoutMs: { min: 100, max },
  drainMs: { min: 100, max, also: [0] },
  abortGraceMs: { min: 100, max, also: [0] },
  maxWaitersPerKey: { min: 1, max },
  maxWaiters: { min: 1, max },
  maxReentry: { min: 1, max },
};

type Use = (options: object) => unknown;

const created: Locks[] = [];
afterEach(async () => {
  for (const locks of created.splice(0)) await locks.close({ drainMs: 0 });
});

function build(options: LocksOptions): Locks {
  const locks = createLocks(options);
  created.push(locks);
  return locks;
}

/** Every call that takes numbers, and which. */
const places: readonly (readonly [string, Readonly<Record<string, Numeric>>, Use])[] = [
  ['createLocks', locksNumbers, build],
  ['getLock', acquireNumbers, (options) => getLock('k', options)],
  ['getLock().acquire', acquireNumbers, (options) => released(getLock('k').acquire(options))],
  ['getLock().tryAcquire', tryNumbers, (options) => released(getLock('k').tryAcquire(options))],
  ['getLock().run', acquireNumbers, (options) => getLock('k').run(() => {}, options)],
  ['lock.acquire', acquireNumbers, (options) => released(lock.acquire('k', options))],
  ['lock.tryAcquire', tryNumbers, (options) => released(lock.tryAcquire('k', options))],
  ['lock.run', acquireNumbers, (options) => lock.run('k', () => {}, options)],
  ['lock.release', acquireNumbers, (options) => lock.run('k', () => lock.release('k', options))],
  ['Locked', acquireNumbers, (options) => Locked('k', options as AcquireOptions)],
  ['hold.extend', { leaseMs: { min: 100, max } }, (options) => extended((options as { leaseMs: number }).leaseMs)],
  ['list', { limit: { min: 1, max: 1_000 } }, (options) => build({}).list(options)],
  [
    'forceRelease',
    { fence: { min: 1, max: Number.MAX_SAFE_INTEGER } },
    (options) => build({}).forceRelease('k', options),
  ],
  ['close', { drainMs: { min: 100, max, also: [0] } }, (options) => build({}).close(options)],
  ...Object.entries({ express, koa }).flatMap(([name, { lockOn, traceContext }]) => [
    [`lockOn of ${name}`, { ...acquireNumbers, statusCode: { min: 400, max: 599 } }, lockGuard(lockOn)] as const,
    [
      `traceContext of ${name}`,
      { abortGraceMs: { min: 100, max, also: [0] } },
      (options: object) => traceContext(options),
    ] as const,
  ]),
];

function lockGuard(lockOn: (key: string, options: object) => unknown): Use {
  return (options) => lockOn('k', options);
}

async function released(acquired: ReturnType<typeof lock.tryAcquire>): Promise<void> {
  await (await acquired)?.release();
}

async function extended(leaseMs: number): Promise<void> {
  await lock.run('k', (hold) => hold.extend(leaseMs), { maxHoldMs: max });
}

const neverTaken: readonly unknown[] = [
  -1,
  -0.5,
  10.5,
  Number.NaN,
  Number.NEGATIVE_INFINITY,
  '5',
  '',
  '__proto__',
  400n,
  true,
  null,
  [500],
  {},
  { valueOf: () => 500 },
  new Number(500),
  Symbol('500'),
  () => 500,
];

describe.each(places)('The numbers that %s takes', (_, numbers, use) => {
  const options = Object.entries(numbers);
  /** What came of each value: that it was taken, or the error. */
  async function outcomes(
    name: string,
    values: readonly unknown[],
    beside = {},
  ): Promise<readonly (readonly [unknown, unknown])[]> {
    const told: [unknown, unknown][] = [];
    const { job } = setUp();
    for (const value of values) {
      const used = job().in(async () => {
        await use({ ...beside, [name]: value });
        return 'taken';
      });
      told.push([value, await used.catch((error: unknown) => error)]);
    }
    return told;
  }

  it('Numbers within the bounds of each option are accepted', async () => {
    await everyRow(
      options,
      ([name]) => name,
      async ([name, { min, max: most, also = [], beside }]) => {
        const values = [min, min + 1, most - 1, most, ...also];
        expect(await outcomes(name, values, beside)).toEqual(values.map((value) => [value, 'taken']));
      },
    );
  });

  it('Numbers beyond the bounds of an option are refused, and nothing else is', async () => {
    await everyRow(
      options,
      ([name]) => name,
      ([name, numeric]) => expectRefusals(name, numeric),
    );
  });

  async function expectRefusals(name: string, { min, max: most, also = [], beside }: Numeric): Promise<void> {
    const isBeyond = (value: number): boolean => value < min || value > most;
    const values = [
      ...neverTaken.filter((value) => !Number.isInteger(value) || isBeyond(value as number)),
      ...[min - 1, most + 1, Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER, Number.MAX_VALUE, 0].filter(isBeyond),
    ].filter((value) => !also.includes(value));
    expect(values.length).toBeGreaterThan(10);
    const error = expect.objectContaining({
      code: 'ERR_LOCK_CONFIG',
      message: expect.stringMatching(new RegExp(`^Expected \`${name}\` to be a whole number`)),
    });
    expect(await outcomes(name, values, beside)).toEqual(values.map((value) => [value, error]));
  }
});

it('An option named __proto__ is refused wherever options are taken, and pollutes nothing', async () => {
  const { job } = setUp();
  const options = JSON.parse('{ "__proto__": { "leaseMs": 5 } }') as object;
  for (const [place, , use] of places) {
    if (place === 'hold.extend') continue;
    await expect(job().in(async () => use(options))).rejects.toThrow(/to be among .*, got `__proto__`$/);
  }
  expect({}).not.toHaveProperty('leaseMs');
});
