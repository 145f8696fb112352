import { CallSite } from '../base/call-site.ts';
import { maxTimerMs } from '../base/clock.ts';
import { isPromise } from '../base/maybe-promise.ts';
import { warnOnce } from '../base/process-state.ts';
import { otherName, valueOfOption } from './did-you-mean.ts';
import { LockConfigError } from './errors/mistakes.ts';

/** The rule of one option: the words for the message, and the test. */
export interface Rule {
  readonly expected: string;
  /** Describes the wrong value for the message, if it may be a secret. */
  readonly got?: (value: unknown) => string;
  /** Whether a value that is accepted was probably meant in seconds. */
  readonly looksLikeSeconds?: (value: unknown) => boolean;
  /** What was probably meant by the wrong value. */
  readonly hint?: (value: unknown) => string | undefined;
  accepts(value: unknown): boolean;
}

/** A rule for each option that may be given. */
export type Rules<T> = { readonly [K in keyof Required<T>]: Rule };

/** The least that a duration may be by default: a smaller number was probably meant as seconds. */
const leastMs = 100;

/** A whole number of milliseconds, `min` to 2^31-1. */
export function milliseconds(min: number = leastMs): Rule {
  return { ...wholeNumber(min, maxTimerMs, 'milliseconds'), hint: inSeconds };
}

/** As `milliseconds`, or zero. */
export const millisecondsOrZero: Rule = {
  expected: `${milliseconds().expected}, or 0`,
  accepts: (value) => value === 0 || milliseconds().accepts(value),
  hint: inSeconds,
};

/** A whole number of milliseconds, or `Infinity`. */
export const millisecondsOrInfinity: Rule = {
  expected: `a whole number of milliseconds, 0 to ${maxTimerMs}, or Infinity`,
  accepts: (value) => value === Number.POSITIVE_INFINITY || milliseconds(0).accepts(value),
  hint: inSeconds,
  looksLikeSeconds: (value) => usualSeconds.has(value),
};

/** Waits of so many milliseconds end in a call to the store; of so many seconds, they are what people write. */
const usualSeconds: ReadonlySet<unknown> = new Set([2, 3, 5, 10, 15, 30, 45, 60, 90]);

function warnOfSeconds(name: string, value: unknown): void {
  warnOnce(
    'LOCK_SECONDS',
    `Expected \`${name}\` to be a number of milliseconds, got \`${value}\`: did you mean seconds? Write \`${value}_000\``,
    `${name} ${value}`,
    () => new CallSite(checkOptions),
  );
}

function inSeconds(value: unknown): string | undefined {
  const [, amount, unit = ''] = (typeof value === 'string' && /^\s*(\d+)\s*(ms|s|m|min)\s*$/.exec(value)) || [];
  if (amount !== undefined) return `write \`${inMs(Number(amount), unit)}\``;
  const isSmall = Number.isInteger(value) && (value as number) > 0 && (value as number) < leastMs;
  return isSmall ? `did you mean seconds? Write \`${value}_000\`` : undefined;
}

function inMs(amount: number, unit: string): string {
  const ms = unit === 'ms' ? amount : amount * (unit === 's' ? 1_000 : 60_000);
  return String(ms).replace(/(?=(\d{3})+$)(?!^)/, '_');
}

/** A whole number within bounds. */
export function wholeNumber(min: number, max: number = maxTimerMs, unit?: string): Rule {
  return {
    expected: `a whole number${unit === undefined ? '' : ` of ${unit}`}, ${min} to ${max}`,
    accepts: (value) => Number.isInteger(value) && (value as number) >= min && (value as number) <= max,
  };
}

/** `true` or `false`. */
export const boolean: Rule = { expected: 'true or false', accepts: (value) => typeof value === 'boolean' };

/** A function of any kind. */
export const callable: Rule = { expected: 'a function', accepts: (value) => typeof value === 'function' };

/** A promise, of any library. */
export const promised: Rule = {
  expected: 'a promise',
  accepts: isPromise,
};

/** One of a few strings, or `false` among them. */
export function oneOf(...values: readonly (string | false)[]): Rule {
  return {
    expected: values.map((value) => (value === false ? 'false' : `'${value}'`)).join(' or '),
    accepts: (value) => (values as readonly unknown[]).includes(value),
  };
}

/** A string that matches. */
export function text(pattern: RegExp, words: string): Rule {
  return { expected: words, accepts: (value) => typeof value === 'string' && pattern.test(value) };
}

/** An object that has the methods named. */
export function objectWith(words: string, ...methods: readonly string[]): Rule {
  return {
    expected: words,
    accepts: (value) =>
      typeof value === 'object' &&
      value !== null &&
      methods.every((method) => typeof (value as Record<string, unknown>)[method] === 'function'),
  };
}

/** A rule with one more test. */
export function narrowed(rule: Rule, passes: (value: unknown) => boolean): Rule {
  return { ...rule, accepts: (value) => rule.accepts(value) && passes(value) };
}

/** Throws `LockConfigError`, with the expected and the actual value, unless the rule accepts the value. */
export function checkValue(name: string, value: unknown, rule: Rule): void {
  if (rule.accepts(value)) return;
  const got = value === undefined ? describe(value) : (rule.got ?? describe)(value);
  const hint = rule.hint?.(value);
  throw new LockConfigError(`Expected ${name} to be ${rule.expected}, got ${got}${hint ? `: ${hint}` : ''}`);
}

/**
 * Checks options against their rules and returns a copy without the undefined ones. Throws `LockConfigError` with the option,
 * the expected and the actual value; also for an unknown option, and if one of `needed` is missing.
 */
export function checkOptions<T extends object, N extends keyof T & string = never>(
  options: T | undefined,
  rules: Rules<T>,
  where: string,
  ...needed: readonly N[]
): Partial<T> & Pick<T, N> {
  const checked: Record<string, unknown> = {};
  const meant = (): string => valueOfOption(options, rules as Readonly<Record<string, Rule>>, where, needed);
  for (const [name, value] of options === undefined ? [] : givenIn(options, where, meant)) {
    if (value === undefined) continue;
    if (!Object.hasOwn(rules, name)) {
      const names = Object.keys(rules).map((known) => `\`${known}\``);
      const got = `\`${name}\`${ofClass(options as T)}${meant() || otherName(name, rules, where)}`;
      throw new LockConfigError(`Expected the options of ${where} to be among ${names.join(', ')}, got ${got}`);
    }
    const rule = (rules as Record<string, Rule>)[name] as Rule;
    checkValue(`\`${name}\``, value, rule);
    if (rule.looksLikeSeconds?.(value)) warnOfSeconds(name, value);
    checked[name] = value;
  }
  for (const name of needed) checkValue(`\`${name}\``, checked[name], rules[name]);
  return checked as Partial<T> & Pick<T, N>;
}

function givenIn(options: object, where: string, meant: () => string): [name: string, value: unknown][] {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new LockConfigError(`Expected the options of ${where} to be an object, got ${describe(options)}${meant()}`);
  }
  const given = Object.entries(options);
  // A promise, a signal, a map or an object of getters: its content would be ignored in silence.
  if (given.length === 0 && !isPlain(options)) {
    throw new LockConfigError(
      `Expected the options of ${where} to be an object's own properties, got an object that has none${meant()}`,
    );
  }
  return given;
}

/** Names the class of an object that was passed instead of options: a store, a client, or a request if a factory was not called. */
function ofClass(options: object): string {
  const name: unknown = isPlain(options) ? undefined : options.constructor?.name;
  return typeof name === 'string' && name !== 'Object' ? ` of an object of class ${name}` : '';
}

/** An object literal, of any realm. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** A value and its type, short enough for a message. */
export function describe(value: unknown): string {
  const kind = kindOf(value);
  if (kind === 'object' || kind === 'array' || kind === 'function' || kind === 'symbol') return typed(value);
  // A connection string may have a password: only its scheme is shown.
  const words = String(value).replace(/:\/\/.*/s, '://…');
  return `\`${words.slice(0, 100)}\` (${kind})`;
}

/** A value's type alone. */
export function typed(value: unknown): string {
  return `a value of type ${kindOf(value)}`;
}

function kindOf(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
}
