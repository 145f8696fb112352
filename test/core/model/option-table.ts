import type { LocksOptions } from '../../../src/core/index.ts';

/** How each of the odd values reads in a message. */
export const odd: readonly (readonly [unknown, string])[] = [
  [0, '`0` (number)'],
  [-1, '`-1` (number)'],
  [1.5, '`1.5` (number)'],
  [Number.NaN, '`NaN` (number)'],
  [Number.POSITIVE_INFINITY, '`Infinity` (number)'],
  [Number.NEGATIVE_INFINITY, '`-Infinity` (number)'],
  ['5', '`5` (string)'],
  ['__proto__', '`__proto__` (string)'],
  [5n, '`5` (bigint)'],
  [true, '`true` (boolean)'],
  [2 ** 31, '`2147483648` (number)'],
  [null, '`null` (null)'],
  [{}, 'a value of type object'],
  [[], 'a value of type array'],
  [() => 5, 'a value of type function'],
  [Symbol('5'), 'a value of type symbol'],
];

const anyNumberFrom = (min: number, unit = ' of milliseconds') => `a whole number${unit}, ${min} to 2147483647`;

/** Each option of `createLocks`: what it must be, and which of the odd values it takes all the same. */
export const locksTable: readonly (readonly [keyof LocksOptions, string, readonly unknown[]])[] = [
  ['leaseMs', anyNumberFrom(100), []],
  ['waitMs', 'a whole number of milliseconds, 0 to 2147483647, or Infinity', [0, Number.POSITIVE_INFINITY]],
  ['maxHoldMs', anyNumberFrom(100), []],
  ['renew', 'true or false', [true]],
  ['reentrant', "'trace' or 'request' or false", []],
  ['claimMs', anyNumberFrom(100), []],
  ['pollMs', anyNumberFrom(100), []],
  ['storeTimeoutMs', anyNumberFrom(100), []],
  ['drainMs', `${anyNumberFrom(100)}, or 0`, [0]],
  ['maxWaitersPerKey', anyNumberFrom(1, ''), []],
  ['maxWaiters', anyNumberFrom(1, ''), []],
  ['maxReentry', anyNumberFrom(1, ''), []],
  ['abortGraceMs', `${anyNumberFrom(100)}, or 0`, [0]],
  ['headerName', 'a header name', ['5']],
];

export function isAmong(values: readonly unknown[], value: unknown): boolean {
  return values.some((one) => Object.is(one, value));
}
