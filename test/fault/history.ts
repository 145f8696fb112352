import type { HoldMode } from '../../src/core/index.ts';
import { differ, excludes, nestedCalls, traceOf } from './nesting-rules.ts';
import { crowdsOf, fallsOf } from './permit-rules.ts';

/** What happened to one acquire or hold, told by the process that it happened to. Times are CLOCK_MONOTONIC, ms. */
export interface Entry {
  readonly at: number;
  readonly kind: Kind;
  /** The name of the client process. */
  readonly process: string;
  /** Undefined for what befell a whole process. */
  readonly key?: string | undefined;
  /** A path, as owners are. That of a grant counts. */
  readonly owner?: string | undefined;
  readonly hold?: string | undefined;
  readonly fence?: number | undefined;
  /** How the key was asked for; to write, unless it says so. */
  readonly mode?: HoldMode | undefined;
  /** How many permits were asked for. */
  readonly permits?: number | undefined;
  /** How long the process is told that the hold lasts at least. */
  readonly leftMs?: number | undefined;
  readonly code?: string | undefined;
}

export type Kind =
  /** An acquire was called. */
  | 'asked'
  /** It stands in the queue. */
  | 'queued'
  /** The store answered a poll of this process. */
  | 'polled'
  | 'granted'
  | 'renewed'
  /** The release was called; from here on the hold is not relied on. */
  | 'releasing'
  /** The store took the release. */
  | 'released'
  | 'lost'
  /** The acquire ended without a grant. */
  | 'refused'
  /** A force release of the holds with this fence was called: from here on they are not relied on. */
  | 'forced'
  /** The process was stopped, cut off or killed: it may be passed over until the end of the history. */
  | 'disturbed'
  | 'killed';

export interface Rules {
  /** How many polls of its process a waiter may need after the lock was released. Default: any number. */
  readonly maxPolls?: number;
  /** How long after a release the next waiter is granted at most; only for clocks that tests drive. Default: any time. */
  readonly wakeMs?: number;
  /** Whether the server loses what it knows: then the hold of a process that was killed ends with the process. */
  readonly forgets?: boolean;
  /** Whether no two owners hold a key at once. Not where the server may forget who holds it. Default true. */
  readonly exclusion?: boolean;
  /** Whether all who can show that they came first must be served first. Default true. */
  readonly fifo?: boolean;
  /** Whether a call never waits for what its caller holds. Not where a majority is needed for each. Default true. */
  readonly nesting?: boolean;
}

export interface Violation {
  readonly rule: 'overlap' | 'fence' | 'release' | 'order' | 'wake-up' | 'nesting';
  readonly text: string;
}

interface Span {
  readonly from: number;
  until: number;
}

/** One hold, or one acquire that came to none. */
interface Life {
  readonly key: string;
  readonly process: string;
  readonly owner: string;
  readonly hold: string;
  readonly fence: number;
  readonly mode: HoldMode;
  readonly permits: number | undefined;
  readonly asked: number;
  readonly queued: number | undefined;
  readonly granted: number | undefined;
  /** When its process certainly held: what it was told, up to its release or loss. */
  readonly spans: readonly Span[];
  /** When it was over for its process: released, lost or refused. */
  readonly over: number | undefined;
  readonly releases: readonly number[];
  readonly code: string | undefined;
}

/** What the history breaks of what is promised. None of it depends on how fast the machine is, but for `wakeMs`. */
export function violationsOf(entries: readonly Entry[], rules: Rules = {}): Violation[] {
  const violations: Violation[] = [];
  const dead = new Set(entries.filter((entry) => entry.kind === 'killed').map((entry) => entry.process));
  for (const [key, lives] of groupBy(livesOf(entries, rules), (life) => life.key)) {
    const break_ = (rule: Violation['rule'], text: string) => void violations.push({ rule, text: `${key}: ${text}` });
    const permits = lives.filter((life) => life.permits !== undefined);
    if (rules.exclusion !== false) {
      checkOverlaps(lives, break_);
      for (const { at, owners } of crowdsOf(permits)) break_('overlap', `${owners} owners had permits at ${at}`);
    }
    checkFences(
      lives.filter((life) => life.permits === undefined),
      break_,
    );
    for (const { before, after } of fallsOf(permits)) {
      break_('fence', `${nameOf(after)} came after ${nameOf(before)}, and its fence is smaller`);
    }
    checkReleases(lives, dead, break_);
    for (const { call, caller } of rules.nesting === false ? [] : nestedCalls(lives)) {
      if (call.queued !== undefined)
        break_('nesting', `${nameOf(call)} waited, though ${nameOf(caller)} called it and held it`);
    }
    if (rules.fifo !== false) checkOrder(lives, entries, break_);
    checkWakeUps(lives, entries, rules, break_);
  }
  return violations;
}

type Break = (rule: Violation['rule'], text: string) => void;

/** The history, acquire by acquire. */
function livesOf(entries: readonly Entry[], { forgets = false }: Rules): Life[] {
  const killed = new Map(entries.filter(({ kind }) => kind === 'killed').map(({ process, at }) => [process, at]));
  const forced = groupBy(
    entries.filter(({ kind }) => kind === 'forced'),
    ({ key }) => key as string,
  );
  const byHold = groupBy(
    entries.filter((entry) => entry.hold !== undefined),
    (entry) => `${entry.process} ${entry.hold}`,
  );
  return [...byHold.values()].map((own) => {
    const { process, key } = own[0]!;
    const fence = own.find(({ kind }) => kind === 'granted')?.fence ?? 0;
    const hasPermit = own.some(({ permits }) => permits !== undefined);
    // The fence of a key with permits rises with each owner: a force release takes those before, too.
    const taken = forced.get(key as string)?.filter((one) => one.fence === fence || (hasPermit && one.fence! > fence));
    const ends = [forgets ? killed.get(process) : undefined, ...(taken ?? []).map(({ at }) => at)];
    return lifeOf(
      own.toSorted((a, b) => a.at - b.at),
      Math.min(...ends.filter((end) => end !== undefined)),
    );
  });
}

/** What is told of one acquire; it counts as held up to `end` at most. */
function lifeOf(own: readonly Entry[], end: number): Life {
  const [first] = own as [Entry];
  const at = (...kinds: Kind[]) => own.find((entry) => kinds.includes(entry.kind))?.at;
  const granted = own.find((entry) => entry.kind === 'granted');
  const over = at('releasing', 'released', 'lost', 'refused');
  return {
    key: first.key as string,
    process: first.process,
    owner: granted?.owner ?? (first.owner as string),
    hold: first.hold as string,
    fence: granted?.fence ?? 0,
    mode: first.mode ?? 'write',
    permits: first.permits,
    asked: at('asked') ?? first.at,
    queued: at('queued'),
    granted: granted?.at,
    spans: spansOf(own, Math.min(end, over ?? Number.POSITIVE_INFINITY)),
    over,
    releases: own.filter((entry) => entry.kind === 'released').map((entry) => entry.at),
    code: own.find((entry) => entry.kind === 'refused')?.code,
  };
}

function spansOf(own: readonly Entry[], over: number): Span[] {
  const spans: Span[] = [];
  for (const { kind, at, leftMs = 0 } of own) {
    if ((kind !== 'granted' && kind !== 'renewed') || at >= over || leftMs <= 0) continue;
    const until = Math.min(at + leftMs, over);
    const last = spans.at(-1);
    if (last !== undefined && at <= last.until) last.until = Math.max(last.until, until);
    else spans.push({ from: at, until });
  }
  return spans;
}

function checkOverlaps(lives: readonly Life[], break_: Break): void {
  const all = lives
    .flatMap((life) => life.spans.map((span) => ({ life, ...span })))
    .toSorted((a, b) => a.from - b.from);
  let active: typeof all = [];
  for (const next of all) {
    active = active.filter((one) => one.until > next.from);
    for (const { life, until } of active) {
      if (!excludes(life, next.life)) continue;
      const both = (Math.min(until, next.until) - next.from).toFixed(3);
      break_('overlap', `${nameOf(life)} and ${nameOf(next.life)} both held it, for ${both} ms`);
    }
    active.push(next);
  }
}

function checkFences(lives: readonly Life[], break_: Break): void {
  const held = lives.filter((life) => life.spans.length > 0).toSorted((a, b) => a.spans[0]!.from - b.spans[0]!.from);
  const sharers = groupBy(held, ({ fence }) => String(fence));
  for (const [first, ...others] of sharers.values()) {
    for (const life of others) {
      if (differ(first!, life)) break_('fence', `${nameOf(first!)} and ${nameOf(life)} have one fence`);
    }
  }
  const ended = held.toSorted((a, b) => endOf(a) - endOf(b));
  let over = 0;
  const greatest = new Greatest();
  for (const [index, life] of held.entries()) {
    const from = life.spans[0]!.from;
    for (; over < ended.length && endOf(ended[over]!) <= from; over++) greatest.add(ended[over]!);
    const before = greatest.beside(traceOf(life));
    if (before !== undefined && (life.fence < before.fence || (life.fence === before.fence && differ(life, before)))) {
      break_('fence', `${nameOf(life)} came after ${nameOf(before)}, and its fence is no greater`);
    }
    const last = held[index - 1];
    const isInside = last && traceOf(last) === traceOf(life) && endOf(last) > from && last.mode === 'write';
    if (isInside && life.fence !== last.fence) {
      break_('fence', `${nameOf(life)} re-entered ${nameOf(last)} with another fence`);
    }
  }
}

function endOf(life: Life): number {
  return life.spans.at(-1)!.until;
}

/** The greatest fence so far, and the greatest of another trace than that one's. */
class Greatest {
  #first: Life | undefined;
  #second: Life | undefined;

  add(life: Life): void {
    const isFirsts = this.#first !== undefined && traceOf(this.#first) === traceOf(life);
    if (life.fence >= (this.#first?.fence ?? 0)) {
      if (!isFirsts) this.#second = this.#first;
      this.#first = life;
    } else if (!isFirsts && life.fence >= (this.#second?.fence ?? 0)) this.#second = life;
  }

  beside(trace: string): Life | undefined {
    return this.#first !== undefined && traceOf(this.#first) === trace ? this.#second : this.#first;
  }
}

function checkReleases(lives: readonly Life[], dead: ReadonlySet<string>, break_: Break): void {
  for (const life of lives) {
    if (life.releases.length > 1) break_('release', `${nameOf(life)} was released ${life.releases.length} times`);
    const isEnded = life.over !== undefined || dead.has(life.process);
    if (!isEnded) break_('release', `${nameOf(life)} was neither released nor lost nor refused`);
  }
}

/** Who stood in the queue before another even asked, and was neither disturbed nor gone, must be granted first. */
function checkOrder(lives: readonly Life[], entries: readonly Entry[], break_: Break): void {
  const disturbed = new Map<string, number>();
  for (const { kind, process, at } of entries) {
    if (kind !== 'disturbed' && kind !== 'killed') continue;
    disturbed.set(process, Math.min(at, disturbed.get(process) ?? at));
  }
  const waiters = lives.filter((life) => life.queued !== undefined).toSorted((a, b) => a.asked - b.asked);
  const granted = lives.filter((life) => life.granted !== undefined);
  const fences = new Map<number, string[]>();
  for (const { fence, hold } of granted) fences.set(fence, [...(fences.get(fence) ?? []), hold]);
  for (const first of waiters) {
    const until = Math.min(
      first.granted ?? first.over ?? Number.POSITIVE_INFINITY,
      disturbed.get(first.process) ?? Number.POSITIVE_INFINITY,
    );
    for (const other of granted) {
      const cameLater = other.asked > (first.queued as number);
      const isReentry = (fences.get(other.fence)?.length ?? 0) > 1;
      if (!cameLater || isReentry || (other.granted as number) >= until) continue;
      if (first.granted !== undefined && first.fence < other.fence) continue;
      break_('order', `${nameOf(other)} overtook ${nameOf(first)}`);
    }
  }
}

/** Between the release before it and its own grant, or its giving up, a waiter needs few polls. */
function checkWakeUps(lives: readonly Life[], entries: readonly Entry[], rules: Rules, break_: Break): void {
  const { maxPolls = Number.POSITIVE_INFINITY, wakeMs = Number.POSITIVE_INFINITY } = rules;
  if (maxPolls === Number.POSITIVE_INFINITY && wakeMs === Number.POSITIVE_INFINITY) return;
  const polls = entries.filter((entry) => entry.kind === 'polled' && entry.key === lives[0]?.key);
  const held = lives.filter((life) => life.granted !== undefined).toSorted((a, b) => a.fence - b.fence);
  for (const life of lives) {
    if (life.queued === undefined) continue;
    const end = life.granted ?? life.over ?? lastOf(entries);
    const before =
      life.granted === undefined
        ? held.findLast((one) => (one.granted as number) < end)
        : held.findLast((one) => one.fence < life.fence);
    const releasedAt = before?.releases[0];
    if (releasedAt === undefined) continue;
    const from = Math.max(releasedAt, life.queued);
    const own = polls.filter(({ process, at }) => process === life.process && at > from && at < end).length;
    if (own > maxPolls)
      break_('wake-up', `${nameOf(life)} needed ${own} polls after the release of ${nameOf(before!)}`);
    if (end - from > wakeMs) break_('wake-up', `${nameOf(life)} waited ${Math.round(end - from)} ms for a free lock`);
  }
}

function lastOf(entries: readonly Entry[]): number {
  return entries.reduce((latest, { at }) => Math.max(latest, at), 0);
}

function nameOf({ process, owner, fence }: Life): string {
  return `${process}/${owner}${fence === 0 ? '' : ` (fence ${fence})`}`;
}

function groupBy<T>(all: readonly T[], name: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) {
    const group = groups.get(name(one));
    if (group === undefined) groups.set(name(one), [one]);
    else group.push(one);
  }
  return groups;
}
