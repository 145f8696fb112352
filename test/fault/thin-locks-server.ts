// The server's side of the model of thin locks, as `RedisStore` has them.
//
// A thin lock is a lock that needs no script while nobody waits: a Redis stream whose first entry is the hold.
//   acquire   XADD key NOMKSTREAM * names lease · PEXPIRE key ttl GT · XRANGE key - + COUNT 1
//             The caller holds if the first entry is its own. Any other reply leads to a script.
//   release   XDEL key id
//             Anything but one entry deleted leads to a script.
// A script turns the stream into a record with a queue first. A script that grants a key that is free makes it a stream.

/** An id of a stream entry: the server's time in ticks, and a number among the entries of that tick. */
export type Id = readonly [tick: number, sequence: number];

interface Entry {
  readonly id: Id;
  readonly who: number;
}

/** A key that nobody waits for. Its first entry is the hold, if its lease lasts. */
interface Stream {
  readonly kind: 'stream';
  readonly entries: readonly Entry[];
  readonly lastId: Id;
  /** When the server removes the key; undefined: never. */
  readonly expiresAt?: number | undefined;
}

/** A lock as the scripts keep it. */
export interface LockRecord {
  readonly kind: 'record';
  readonly holder?: { readonly who: number; readonly fence: number; readonly endsAt: number } | undefined;
  readonly queue: readonly number[];
  readonly lastFence: number;
  /** Whose acquires that arrive from now on are refused. */
  readonly tombstones: readonly number[];
  readonly expiresAt: number;
}

/** What the lock's key has; undefined if there is none. */
export type Key = Stream | LockRecord | undefined;

/** A command or a script. A process sends the commands of one call together; the server runs them one by one. */
export type Command =
  | { readonly name: 'XADD' | 'EXPIRE' | 'FIRST'; readonly who: number }
  | { readonly name: 'XDEL'; readonly who: number; readonly id: Id }
  | { readonly name: 'acquire'; readonly who: number; readonly leaseTicks: number }
  | { readonly name: 'renew'; readonly who: number; readonly leaseTicks: number }
  | { readonly name: 'release'; readonly who: number; readonly tombstone: boolean };

export type Reply =
  | { readonly is: 'granted'; readonly fence: number; readonly leftTicks: number; readonly entry?: Id | undefined }
  | { readonly is: 'first'; readonly who: number; readonly id: Id }
  | { readonly is: 'queued' | 'cancelled' | 'lost' | 'deleted' | 'done' | 'other' };

/** How many fences there are for each tick: the real protocol has 1,000 for each millisecond. */
export const fencesPerTick = 2;
/** How long the lease of a thin hold lasts. */
export const leaseTicks = 2;
/** For how long a key that is thin lives on. */
export const thinTicks = 3;

/** The decisions of the protocol. A test of the model replaces one of them by a wrong one. */
export interface Protocol {
  /** Which entry of a stream is the hold, when a script turns the stream into a record. */
  holderOf(entries: readonly Entry[]): Entry | undefined;
  /** Whether XADD makes a stream of a key that is not there. */
  makesStream: boolean;
  /** When the server removes a key after an EXPIRE, which never makes that sooner. */
  expiry(old: number | undefined, wanted: number): number | undefined;
  /** Whether a script that grants a lock makes it thin again. */
  mayBeThin(record: LockRecord): boolean;
  /** The fence of a hold that a script makes thin. */
  thinFence(record: LockRecord, now: number): number;
  /** Whether a release is remembered that an acquire may follow. */
  remembers: boolean;
  /** What the last command of a thin acquire returns. */
  first(stream: Stream, who: number): Reply;
  /** Whether that reply says that the caller holds. */
  isHeld(reply: Reply, who: number): boolean;
  /** Whether a hold whose acquire was answered at once may be released by XDEL. */
  mayDelete(wasResent: boolean, wasRenewed: boolean): boolean;
  /** What an XDEL that deleted nothing means. */
  onNotDeleted: 'gone' | 'ask script';
}

export const realProtocol: Protocol = {
  holderOf: (entries) => entries[0],
  makesStream: false,
  // A key without an end counts as one that never ends.
  expiry: (old, wanted) => old && Math.max(old, wanted),
  mayBeThin: ({ holder, queue, tombstones }) => holder === undefined && queue.length === 0 && tombstones.length === 0,
  thinFence: nextFence,
  remembers: true,
  first: ({ entries: [first] }) => (first === undefined ? { is: 'other' } : { is: 'first', ...first }),
  isHeld: (reply, who) => reply.is === 'first' && reply.who === who && reply.id[1] < fencesPerTick,
  mayDelete: (wasResent, wasRenewed) => !wasResent && !wasRenewed,
  onNotDeleted: 'ask script',
};

export function fenceOf([tick, sequence]: Id): number {
  return tick * fencesPerTick + sequence;
}

/** Runs a command at a time of the server's clock. */
export function run(key: Key, command: Command, now: number, protocol: Protocol): [Key, Reply] {
  switch (command.name) {
    case 'XADD':
      return add(key, command.who, now, protocol);
    case 'EXPIRE':
      if (key === undefined) return [key, { is: 'other' }];
      return [{ ...key, expiresAt: protocol.expiry(key.expiresAt, now + thinTicks) } as Key, { is: 'done' }];
    case 'FIRST':
      return [key, key?.kind === 'stream' ? protocol.first(key, command.who) : { is: 'other' }];
    case 'XDEL':
      return remove(key, command.id);
    default:
      return runScript(inflated(key, now, protocol), command, now, protocol);
  }
}

/** Who holds the lock, as far as the server knows. */
export function holderOf(key: Key, now: number): number | undefined {
  return key === undefined ? undefined : inflated(key, now, realProtocol).holder?.who;
}

function add(key: Key, who: number, now: number, { makesStream }: Protocol): [Key, Reply] {
  if (key?.kind === 'record' || (key === undefined && !makesStream)) return [key, { is: 'other' }];
  const [tick, sequence] = key?.lastId ?? [-1, 0];
  const id: Id = now > tick ? [now, 0] : [tick, sequence + 1];
  const entries = [...(key?.entries ?? []), { id, who }];
  return [{ kind: 'stream', entries, lastId: id, expiresAt: key?.expiresAt }, { is: 'done' }];
}

function remove(key: Key, { 0: tick, 1: sequence }: Id): [Key, Reply] {
  if (key?.kind !== 'stream') return [key, { is: 'other' }];
  const entries = key.entries.filter(({ id }) => id[0] !== tick || id[1] !== sequence);
  return [{ ...key, entries }, { is: entries.length < key.entries.length ? 'deleted' : 'other' }];
}

/** What every script does first: it makes a record of a stream, and forgets a hold whose lease is over. */
function inflated(key: Key, now: number, protocol: Protocol): LockRecord {
  if (key === undefined) {
    return { kind: 'record', queue: [], lastFence: 0, tombstones: [], expiresAt: 0 };
  }
  if (key.kind === 'record') {
    return key.holder !== undefined && key.holder.endsAt <= now ? { ...key, holder: undefined } : key;
  }
  // The clock may have been set back since.
  const endOf = ({ id }: Entry): number => Math.min(id[0], now) + leaseTicks;
  const first = protocol.holderOf(key.entries);
  const isHeld = first !== undefined && endOf(first) > now;
  const holder = isHeld ? { who: first.who, fence: fenceOf(first.id), endsAt: endOf(first) } : undefined;
  return {
    kind: 'record',
    holder,
    queue: [],
    lastFence: fenceOf(first?.id ?? key.lastId),
    tombstones: [],
    expiresAt: 0,
  };
}

type ScriptCall = Extract<Command, { readonly name: 'acquire' | 'renew' | 'release' }>;
type LeaseCall = Extract<Command, { readonly leaseTicks: number }>;

function runScript(record: LockRecord, command: ScriptCall, now: number, protocol: Protocol): [Key, Reply] {
  if (command.name === 'acquire') return acquire(record, command, now, protocol);
  const isHolder = record.holder?.who === command.who;
  if (command.name === 'renew') {
    if (record.holder === undefined || !isHolder) return [stored(record, now), { is: 'lost' }];
    return grant(record, command, record.holder.fence, now);
  }
  const { who, tombstone } = command;
  const [first] = record.queue.filter((waiter) => waiter !== who);
  let after: LockRecord = {
    ...record,
    holder: isHolder ? undefined : record.holder,
    queue: record.queue.filter((waiter) => waiter !== who),
    tombstones: tombstone && protocol.remembers ? [...new Set([...record.tombstones, who])] : record.tombstones,
  };
  if (after.holder === undefined && first !== undefined)
    after = granted(after, first, leaseTicks, nextFence(after, now), now);
  return [stored(after, now), { is: 'done' }];
}

function acquire(record: LockRecord, call: LeaseCall, now: number, protocol: Protocol): [Key, Reply] {
  const { who } = call;
  const { holder, queue, tombstones } = record;
  if (tombstones.includes(who)) return [stored(record, now), { is: 'cancelled' }];
  if (holder?.who === who) return [stored(record, now), { is: 'granted', ...termsOf(holder, now) }];
  if (call.leaseTicks <= leaseTicks && protocol.mayBeThin(record)) return grantThin(record, who, now, protocol);
  const next = queue[0] ?? who;
  if (holder !== undefined || next !== who) {
    const waiting = { ...record, queue: queue.includes(who) ? queue : [...queue, who] };
    const after = holder === undefined ? granted(waiting, next, leaseTicks, nextFence(record, now), now) : waiting;
    return [stored(after, now), { is: 'queued' }];
  }
  return grant(record, call, nextFence(record, now), now);
}

function grant(record: LockRecord, { who, leaseTicks }: LeaseCall, fence: number, now: number): [Key, Reply] {
  const after = granted(record, who, leaseTicks, fence, now);
  return [stored(after, now), { is: 'granted', ...termsOf(after.holder as Holder, now) }];
}

function grantThin(record: LockRecord, who: number, now: number, protocol: Protocol): [Key, Reply] {
  const fence = protocol.thinFence(record, now);
  const entry: Id = [Math.floor(fence / fencesPerTick), fence % fencesPerTick];
  const entries = [{ id: entry, who }];
  const expiresAt = Math.max(record.expiresAt, Math.max(now, entry[0]) + thinTicks);
  const leftTicks = Math.min(entry[0], now) + leaseTicks - now;
  return [
    { kind: 'stream', entries, lastId: entry, expiresAt },
    { is: 'granted', fence, leftTicks, entry },
  ];
}

type Holder = NonNullable<LockRecord['holder']>;

function granted(record: LockRecord, who: number, ticks: number, fence: number, now: number): LockRecord {
  const endsAt = Math.max(record.holder?.endsAt ?? 0, now + ticks);
  return {
    ...record,
    holder: { who, fence, endsAt },
    queue: record.queue.filter((one) => one !== who),
    lastFence: fence,
  };
}

function termsOf({ fence, endsAt }: Holder, now: number): { fence: number; leftTicks: number } {
  return { fence, leftTicks: endsAt - now };
}

function nextFence({ lastFence }: LockRecord, now: number): number {
  return Math.max(lastFence + 1, now * fencesPerTick);
}

/** The last fence outlives the hold. */
function stored(record: LockRecord, now: number): LockRecord {
  const lastTick = Math.ceil(record.lastFence / fencesPerTick);
  const expiresAt = Math.max(record.expiresAt, Math.max(now, lastTick, record.holder?.endsAt ?? 0) + 1);
  return { ...record, expiresAt };
}
