import { createHash } from 'node:crypto';
import { CallSite } from '../base/call-site.ts';
import { warnOnce } from '../base/process-state.ts';
import { LockConfigError, LockKeyError } from './errors/mistakes.ts';
import { spelledOtherwise } from './key-spelling.ts';

/** One key: `42`, `42n` and `'42'` are the same. */
export type LockKey = string | number | bigint;

/** What a key function may return; `undefined`, `null` and `''` are in the type, and refused at run time. */
export type LockKeys = LockKey | null | undefined | readonly (LockKey | null | undefined)[];

/** A checked key: as the application wrote it, and as stores and maps know it. */
export interface LockName {
  readonly key: string;
  readonly category: string | undefined;
  /** Category and key, encoded: not empty, free of `{`, `}`, white space and control characters, 256 bytes at most. */
  readonly id: string;
}

const maxKeyBytes = 4096;
const maxIdBytes = 256;

/** The name of a lock that no key has: it is only read, to see that the store replies. A `%` begins four digits in all others. */
export const pingName = '%ping';

/**
 * Checks a key and encodes it with its category. Two different pairs never have the same name. `position` says where the key is
 * in a list.
 */
export function lockName(key: unknown, category?: string, position?: number): LockName {
  // Most keys are short and plain: they are their own names.
  if (category === undefined && typeof key === 'string' && shortAndPlain.test(key)) return { key, category, id: key };
  const text = keyText(key, position);
  return { key: text, category, id: shorten(namePrefix(text, category)) };
}

/**
 * The name of a key that an operator has from a list: a long name is listed as its hash, `%h` and 64 digits, which names the
 * same lock here. The hash does not show the category.
 */
export function listedName(key: unknown, category?: string): LockName {
  if (typeof key === 'string' && /^%h[0-9a-f]{64}$/.test(key)) return { key, category, id: key };
  return lockName(key, category);
}

/**
 * The name of a key, where it need not be hashed. Of the beginning of a key: what the names of all keys that begin so begin
 * with, but for those that are hashed.
 */
export function namePrefix(prefix: string, category: string | undefined): string {
  return category === undefined ? escapeUnsafe(prefix) : `${escapeUnsafe(category)}|${escapeUnsafe(prefix)}`;
}

/** The category and key of a name. A hashed name is returned as it is. */
export function readName(id: string): { readonly category: string | undefined; readonly key: string } {
  const bar = id.indexOf('|');
  return {
    category: bar < 0 ? undefined : unescapeUnsafe(id.slice(0, bar)),
    key: unescapeUnsafe(id.slice(bar + 1)),
  };
}

/** How a message names the place that takes a constant key or a function. */
export interface KeyPlace {
  /** What the key should be. */
  readonly expected: string;
  /** How to write the function. */
  readonly instead: string;
}

/** Refuses a constant key that was meant as a template: it would be one lock for all calls. */
export function assertConstantKey(key: string, { expected, instead }: KeyPlace): void {
  if (/(^|\/):[A-Za-z_]|\$\{|\{[^}]*\}/.test(key)) {
    throw new LockConfigError(
      `Expected ${expected}, or a constant; got a constant that looks like a template, which would be one lock for every request. Write \`${instead}\` instead`,
      { key },
    );
  }
}

/**
 * The part of a key that was probably made from a missing value (`order:undefined`), or the beginning of a template
 * (`order:${id}` in plain quotes), if there is one.
 */
function suspiciousSegment(key: string): string | undefined {
  const [, word, template] =
    /(?:^|[:/|,.])(undefined|null|NaN|\[object Object\])(?=$|[:/|,.])|(\$\{)[\w.]+\}/.exec(key) ?? [];
  return word ?? template;
}

function keyText(key: unknown, position: number | undefined): string {
  if (typeof key === 'bigint') return shortEnough(key.toString());
  const where = position === undefined ? '' : ` \`keys[${position}]\``;
  if (typeof key === 'number') {
    if (Number.isFinite(key)) return String(key);
    throw new LockKeyError(
      `Expected the lock key${where} to be a string or a finite number, got \`${key}\` (number): ${missing}`,
    );
  }
  if (typeof key !== 'string') {
    throw new LockKeyError(`Expected the lock key${where} to be a string, number or bigint, got ${gotAsKey(key)}`);
  }
  if (key === '')
    throw new LockKeyError(`Expected the lock key${where} to be a non-empty string, got an empty one: ${missing}`);
  return shortEnough(key);
}

const missing = 'the value that it is made from is probably missing';

function gotAsKey(key: unknown): string {
  if (key === undefined || key === null) return `${key}: ${missing}`;
  return Array.isArray(key) ? 'array; `acquireAll` and `runAll` take several' : typeof key;
}

function shortEnough(key: string): string {
  // A UTF-16 unit is at most three bytes: most keys are short enough without counting.
  if (key.length * 3 > maxKeyBytes && Buffer.byteLength(key) > maxKeyBytes) {
    throw new LockKeyError(`Expected the lock key to be ${maxKeyBytes} bytes at most, got ${Buffer.byteLength(key)}`);
  }
  return key;
}

// Characters that break a Redis hash tag, a script's argument lists or a log line. A lone surrogate does not survive UTF-8.
const unsafe =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  /[\s\u0000-\u001f\u007f-\u009f%{}|]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Needs no escaping. */
const plain = /^[\w:.,/@+-]*$/;
const shortAndPlain = /^[\w:.,/@+-]{1,256}$/;

function escapeUnsafe(text: string): string {
  if (plain.test(text)) return text;
  return text.replace(unsafe, (unit) => `%${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function unescapeUnsafe(encoded: string): string {
  return encoded.replace(/%([0-9a-f]{4})/g, (_, unit: string) => String.fromCharCode(Number.parseInt(unit, 16)));
}

/** `%h` starts no escape, so a hash is never mistaken for a key. */
function shorten(encoded: string): string {
  if (encoded.length * 3 <= maxIdBytes || Buffer.byteLength(encoded) <= maxIdBytes) return encoded;
  return `%h${createHash('sha256').update(encoded).digest('hex')}`;
}

/** Returns the route of a request, as errors and warnings name it, such as `POST /orders/:id`; undefined if it is unknown. */
export type RouteOf = () => string | undefined;

/** Names a route in a message; empty if it is unknown. */
export function onRoute(route: string | undefined): string {
  return route === undefined ? '' : ` on the route \`${route}\``;
}

/** Checks a key, and warns if a part of it was probably a missing value: once a route, or once for each form of a key. */
export function checkedName(
  key: unknown,
  category: string | undefined,
  routeOf?: RouteOf,
  position?: number,
): LockName {
  const name = lockName(key, category, position);
  const suspect = suspiciousSegment(name.key);
  if (suspect !== undefined) {
    const form = formOf(name.key);
    const route = routeOf?.();
    warnOnce(
      'LOCK_KEY_SEGMENT',
      `Expected each part of a lock key to have a value, got \`${form}\`${onRoute(route)}: the value for "${suspect}" was probably missing, so unrelated work may share this lock`,
      route ?? form,
      route === undefined ? () => new CallSite(checkedName) : undefined,
    );
  }
  const plain = spelledOtherwise(name.key, category);
  if (plain !== undefined) {
    const form = formOf(plain);
    warnOnce(
      'LOCK_KEY_SPELLING',
      `Expected each key to be written in one way, got two of the form \`${form}\`${onRoute(routeOf?.())} that differ only in white space, leading zeros, letter case or Unicode form: they are two locks, and nobody under one waits for the other. Normalize the value before you lock`,
      form,
      () => new CallSite(checkedName),
    );
  }
  return name;
}

/** A key in a warning: the words that all such keys have, and `*` instead of values. */
function formOf(key: string): string {
  return key.replace(/\$\{[^{}]*\}|[^:/|,.]+/g, (part, at: number) =>
    suspiciousSegment(part) !== undefined || (at === 0 && /^[A-Za-z][\w-]{0,31}$/.test(part)) ? part : '*',
  );
}

/** Checks a list of keys. Returns each of them once, in the order of the list. */
export function checkedNames(
  keys: Extract<LockKeys, readonly unknown[]>,
  category: string | undefined,
  routeOf?: RouteOf,
): LockName[] {
  if (!Array.isArray(keys)) {
    throw new LockKeyError(
      `Expected the lock keys to be a list, got ${typeof keys}: for one key, write \`lock.run\` or \`lock.acquire\``,
    );
  }
  if (keys.length === 0)
    throw new LockKeyError('Expected the lock keys to be a list of at least one key, got an empty list');
  const names = new Map<string, LockName>();
  for (const [position, key] of keys.entries()) {
    const name = checkedName(key, category, routeOf, position);
    if (!names.has(name.id)) names.set(name.id, name);
  }
  return [...names.values()];
}
