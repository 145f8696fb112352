import type { IncomingMessage } from 'node:http';
import { maxTimerMs } from '../base/clock.ts';
import { assertGrantable } from './capabilities.ts';
import { LockConfigError } from './errors/mistakes.ts';
import { defaultInstance } from './process-name.ts';
import { type SignedTrust, TraceSignatures } from './signature.ts';
import type { LockStore } from './store.ts';
import type { AcquireOptions, HoldMode } from './types.ts';
import {
  boolean,
  checkOptions,
  milliseconds,
  millisecondsOrInfinity,
  millisecondsOrZero,
  narrowed,
  objectWith,
  oneOf,
  type Rule,
  type Rules,
  text,
  typed,
  wholeNumber,
} from './validate.ts';

/**
 * Whose trace header is adopted: that of internal peers (in-process, loopback, private, link-local), of all clients, of
 * none, of requests that a predicate accepts, or of clients that sign it. A sender whose id is adopted can re-enter the locks
 * of that trace. docs/concepts/owner.md lists the networks in which `'internal'` is not safe.
 */
export type Trust =
  | 'internal'
  | 'all'
  | 'none'
  | ((request: IncomingMessage) => boolean)
  | SignedTrust
  | TraceSignatures;

/** `Trust` in `settings`: secrets are private, so that logging cannot leak them. */
export type CheckedTrust = Exclude<Trust, SignedTrust>;

/** The options of `traceContext` that its `Locks` may set for all. */
export interface TraceOptions {
  /** Default `'internal'`; with `NODE_ENV=production` it is `'none'`. */
  readonly trust?: Trust | undefined;
  /** The request and response header of the trace id. Default `X-Trace-Id`. */
  readonly headerName?: string | undefined;
  /**
   * What a request is that sends a trusted trace id without a branch: `'owner'` (default), one owner with all others of that id,
   * which enter together; or `'branch'`, a separate branch for each, for callers whose ids only label their requests.
   */
  readonly bareTraceId?: 'owner' | 'branch' | undefined;
  /** How long a handler may go on after its client disconnected, in milliseconds; then its holds are lost. Default 30 000. */
  readonly abortGraceMs?: number | undefined;
}

/** The options of an acquire that its `Locks` may set for all. */
type CommonOptions = Pick<AcquireOptions, 'waitMs' | 'leaseMs' | 'renew' | 'maxHoldMs' | 'reentrant'>;

/** The options of `createLocks`. Durations are milliseconds; those of an acquire are its defaults. */
export interface LocksOptions extends TraceOptions, CommonOptions {
  /** The store. Default: a new `MemoryStore`, which doesn't exclude other processes. */
  readonly store?: LockStore | undefined;
  /** How long a grant by hand-off lasts until its first renewal, `leaseMs` at most. Default 3 000. */
  readonly claimMs?: number | undefined;
  /** How often a process polls for its waiters, in case a message got lost. Default 1 000. */
  readonly pollMs?: number | undefined;
  /**
   * The deadline of every store call, then `LockStoreError`; an acquire in the queue goes on waiting for its `waitMs`. Default
   * 2 000.
   */
  readonly storeTimeoutMs?: number | undefined;
  /** How long `close` waits for holds to be released; then they are lost. Default 10 000. */
  readonly drainMs?: number | undefined;
  /** How many waiters a key's queue takes; one more gets a `LockLimitError`. Default 1 000. */
  readonly maxWaitersPerKey?: number | undefined;
  /** How many acquires of this `Locks` may wait at once, over all keys; one more gets a `LockLimitError`. Default 10 000. */
  readonly maxWaiters?: number | undefined;
  /**
   * What operators know this process by, in `inspect`, `list` and on the board: 1 to 64 letters, digits and `._:@/-`, the
   * first one a letter or digit. Default: host name and process id.
   */
  readonly instance?: string | undefined;
  /** How many holds one scope may have on one key; one more gets a `LockLimitError`. Default 64. */
  readonly maxReentry?: number | undefined;
}

/** The options of one `Locks`, with their defaults; secrets are not among them. */
export type LocksSettings = {
  readonly [K in Exclude<keyof LocksOptions, 'store' | 'trust'>]-?: NonNullable<LocksOptions[K]>;
} & Pick<LocksOptions, 'store'> & { readonly trust: CheckedTrust | undefined };

/** The options of an acquire that its `Locks` sets for all. */
type CommonSettings = Pick<LocksSettings, keyof CommonOptions>;

/** The options of one acquire, without `category`, which is a part of the lock's name. */
export interface AcquireSettings extends CommonSettings {
  readonly mode: HoldMode;
  readonly permits: number | undefined;
  readonly priority: number;
  readonly signal: AbortSignal | undefined;
}

const trust: Rule = {
  expected: `'internal', 'all', 'none', a function of the request, or \`{ secrets, audience }\``,
  // A value longer than a name may be a secret in the wrong place.
  got: (value) => (typeof value === 'string' && /^[a-z-]{1,15}$/.test(value) ? `'${value}'` : typed(value)),
  accepts: (value) =>
    typeof value === 'function' ||
    (typeof value === 'object' && value !== null && !Array.isArray(value)) ||
    ['internal', 'all', 'none'].includes(value as string),
};

const headerName = narrowed(
  text(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/, 'a header name'),
  // Node keeps headers in a plain object: `__proto__` and the like are never from a client.
  (name) => !((name as string).toLowerCase() in {}),
);

const signal = narrowed(
  objectWith('an AbortSignal', 'addEventListener', 'removeEventListener'),
  // Other event targets do not have `aborted`.
  (target) => typeof (target as Partial<AbortSignal>).aborted === 'boolean',
);

const storeMethods = ['acquire', 'renew', 'release', 'inspect', 'forceRelease', 'subscribe'];

/** The rule for a store. */
export const lockStore: Rule = narrowed(
  objectWith('a lock store with its methods and `capabilities`, such as a `RedisStore`', ...storeMethods),
  (value) => {
    const { capabilities } = value as Partial<LockStore>;
    return typeof capabilities === 'object' && capabilities !== null;
  },
);

/** Each option has a row, in the table of the places where it may stand: its rule, and its default, if it has one. */
type Table<T> = { readonly [K in keyof Required<T>]: readonly [rule: Rule, byDefault?: T[K]] };

/** In `createLocks` and `traceContext`. */
const traceTable: Table<TraceOptions> = {
  trust: [trust],
  headerName: [headerName, 'X-Trace-Id'],
  bareTraceId: [oneOf('owner', 'branch'), 'owner'],
  abortGraceMs: [millisecondsOrZero, 30_000],
};

/** In `createLocks` and in each acquire. */
const commonTable: Table<CommonOptions> = {
  // A waiter outlives a holder whose process died.
  waitMs: [millisecondsOrInfinity, 15_000],
  leaseMs: [milliseconds(), 10_000],
  renew: [boolean, true],
  maxHoldMs: [milliseconds(), 300_000],
  reentrant: [oneOf('trace', 'request', false), 'trace'],
};

/** In each acquire. `acquireSettings` has the defaults: no `Locks` may set others. */
const acquireTable: Table<Omit<AcquireOptions, keyof CommonOptions>> = {
  signal: [signal],
  category: [text(/^[\s\S]{1,256}$/, 'a string of 1 to 256 characters')],
  mode: [oneOf('write', 'read')],
  permits: [wholeNumber(1, 1_000)],
  priority: [wholeNumber(-100, 100)],
};

/** In `createLocks`. */
const locksTable: Table<Omit<LocksOptions, keyof TraceOptions | keyof CommonOptions>> = {
  store: [lockStore],
  claimMs: [milliseconds(), 3_000],
  pollMs: [milliseconds(), 1_000],
  storeTimeoutMs: [milliseconds(), 2_000],
  drainMs: [millisecondsOrZero, 10_000],
  maxWaitersPerKey: [wholeNumber(1), 1_000],
  maxWaiters: [wholeNumber(1), 10_000],
  maxReentry: [wholeNumber(1, maxTimerMs), 64],
  instance: [
    text(
      /^[A-Za-z0-9][\w.:@/-]{0,63}$/,
      '1 to 64 letters, digits, dots, colons, slashes, underscores, hyphens or @, the first one a letter or digit',
    ),
  ],
};

/** Shared with `traceContext`. */
export const traceRules: Rules<TraceOptions> = rulesOf(traceTable);
/** Shared with guards. */
export const acquireRules: Rules<AcquireOptions> = rulesOf({ ...commonTable, ...acquireTable });
const allOfLocks: Table<LocksOptions> = { ...traceTable, ...commonTable, ...locksTable };
const locksRules = rulesOf(allOfLocks);
const defaults = defaultsOf(allOfLocks);

function rulesOf<T>(table: Table<T>): Rules<T> {
  const rows = Object.entries<readonly [Rule, unknown?]>(table);
  return Object.fromEntries(rows.map(([name, [rule]]) => [name, rule])) as Rules<T>;
}

function defaultsOf<T>(table: Table<T>): T {
  const rows = Object.entries<readonly [Rule, unknown?]>(table);
  return Object.fromEntries(rows.map(([name, [, byDefault]]) => [name, byDefault])) as T;
}

/** Checks, completes and freezes the options of `createLocks`. Throws `LockConfigError`. */
export function resolveLocksOptions(options: LocksOptions | undefined): LocksSettings {
  const checked = { ...defaults, ...checkOptions(options, locksRules, 'createLocks') };
  const { instance = defaultInstance(), trust } = checked;
  const settings = { ...checked, instance, trust: checkTrust(trust) } as LocksSettings;
  assertLeaseFits(settings);
  assertGrantable(settings.leaseMs, settings.store?.capabilities);
  return Object.freeze(settings);
}

/** Checks secrets and audience, and makes them private. Throws `LockConfigError`. */
export function checkTrust(trust: Trust | undefined): CheckedTrust | undefined {
  if (typeof trust !== 'object' || trust instanceof TraceSignatures) return trust;
  return new TraceSignatures(trust);
}

/**
 * Checks the options of a lock or of one acquire, and drops the undefined ones. `rules` has those that the call takes. Throws
 * `LockConfigError`.
 */
export function checkAcquireOptions<T extends AcquireOptions>(
  options: T | undefined,
  where: string,
  rules: Partial<Rules<T>> = acquireRules as Partial<Rules<T>>,
): T {
  if (options === undefined) return {} as T;
  const checked = checkOptions(options, rules as Rules<T>, where) as T;
  if (checked.leaseMs !== undefined && checked.maxHoldMs !== undefined) assertLeaseFits(checked as CommonSettings);
  assertOneMode(checked);
  return Object.freeze(checked);
}

/** The options of an acquire over the defaults of its `Locks`. Both were checked. */
export function acquireSettings(ofLocks: CommonSettings, options: AcquireOptions): AcquireSettings {
  assertOneMode(options);
  const settings: AcquireSettings = {
    waitMs: options.waitMs ?? ofLocks.waitMs,
    leaseMs: options.leaseMs ?? ofLocks.leaseMs,
    renew: options.renew ?? ofLocks.renew,
    maxHoldMs: options.maxHoldMs ?? ofLocks.maxHoldMs,
    reentrant: options.reentrant ?? ofLocks.reentrant,
    mode: options.permits === undefined ? (options.mode ?? 'write') : 'permit',
    permits: options.permits,
    priority: options.priority ?? 0,
    signal: options.signal,
  };
  assertLeaseFits(settings);
  return settings;
}

function assertLeaseFits({ leaseMs, maxHoldMs }: Pick<CommonSettings, 'leaseMs' | 'maxHoldMs'>): void {
  if (leaseMs <= maxHoldMs) return;
  throw new LockConfigError(
    `Expected \`leaseMs\` to be \`maxHoldMs\` (${maxHoldMs}) at most, got \`${leaseMs}\`: raise \`maxHoldMs\` with it`,
  );
}

function assertOneMode({ mode, permits }: AcquireOptions): void {
  if (mode === undefined || permits === undefined) return;
  throw new LockConfigError(
    `Expected \`mode\` or \`permits\`, got both, \`'${mode}'\` and \`${permits}\`: a key is for readers and writers, or has permits. Leave one out`,
  );
}
