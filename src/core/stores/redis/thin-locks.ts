import { type Clock, elapsedMs, type Instant, systemClock } from '../../base/clock.ts';
import { LockStoreError } from '../../model/errors.ts';
import type { AcquireReply, AcquireTerms, HoldRequest, ReleaseReply, StoreListener } from '../../model/store.ts';
import type { GroupingDriver, RedisCommand, RedisDriver, RedisReplies } from './drivers/driver.ts';
import { storeError } from './errors.ts';
import { readGrant } from './replies.ts';

/** The longest lease of a thin hold. */
const maxLeaseMs = 3_600_000;
const fencesPerMs = 1_000;
/** Of how many thin locks this process knows that they are free, or its own. Others go to a script first. */
const maxKnown = 10_000;

/** The connections, and the time of this process, when an acquire was sent. */
interface Sent {
  readonly epoch: unknown;
  readonly sentAt: Instant;
}

/** What this process knows of a hold that is an entry of a stream. */
interface ThinHold extends Sent {
  readonly entryId: string;
  readonly leaseMs: number;
  /** The server's time. */
  readonly grantedMs: number;
  state: 'held' | 'in a record' | 'maybe released' | 'released';
  /** Until when its release is remembered, on the monotonic clock of this process. */
  rememberedUntilMs: number;
}

type Probe = 'allowed' | 'too old' | 'no right' | 'unknown';

/**
 * Locks that need no script while nobody else wants them. Such a lock is a stream in place of the record, and its first
 * entry is the hold: lua/parts/layout.lua has the format. A script makes a lock thin when it grants a key that is free. From
 * then on XDEL releases it, and XADD acquires it. Any reply but the usual one, and any call but these two, goes to a script,
 * which makes a record of the stream.
 *
 * Each command may arrive late or twice. An entry that is not the first is never a hold, and a hold whose acquire may
 * arrive again is released by script, which remembers that. XADD makes no key: if the server has lost its data, a script
 * grants the lock, under a fence that is higher than all that were lost.
 */
export class ThinLocks {
  readonly #driver: GroupingDriver;
  readonly #probeKey: string;
  readonly #recordTtlMs: number;
  readonly #clock: Clock;
  readonly #holds = new WeakMap<HoldRequest, ThinHold>();
  /** By record, oldest first: the hold of this process, or since when it left the lock free, on the monotonic clock. */
  readonly #known = new Map<string, ThinHold | number>();
  /** Whether the server and the user's rights allow thin locks; undefined until that is known. */
  #isAllowed: boolean | undefined;
  #probe: Promise<Probe> | undefined;

  /** Whether a client can have thin locks: it must send the commands of a call to one server. */
  static fits(driver: RedisDriver): driver is GroupingDriver {
    return driver.sendGroup !== undefined;
  }

  /** `probeKey` is a key that nothing uses. A lock is kept for `recordTtlMs` after its lease. */
  constructor(driver: GroupingDriver, probeKey: string, recordTtlMs: number, clock: Clock = systemClock) {
    this.#driver = driver;
    this.#probeKey = probeKey;
    this.#recordTtlMs = recordTtlMs;
    this.#clock = clock;
  }

  /** Finds out whether thin locks are allowed, if that is not known. Until then, locks go by scripts. */
  prepare(): void {
    if (this.#isAllowed === undefined) void this.#probed();
  }

  /** Tells a listener if the user lacks a right. */
  async warn(listener: StoreListener): Promise<void> {
    await this.#driver.connection.opened().catch(() => undefined);
    if (!this.#driver.link.isUp || (await this.#probed()) !== 'no right') return;
    const message =
      'Expected the user of the Redis client to have the rights `+xadd +xdel +xrange`, and one is missing: all locks go by scripts, which costs more. Grant these rights, or set `thinLocks: false`';
    listener({ kind: 'warning', code: 'LOCK_THIN_RIGHTS', message });
  }

  /** Whether the first acquire of a hold may find or make the lock thin. A later one is a poll, which is for scripts. */
  accepts({ mode }: HoldRequest, { leaseMs, minFence, newest }: AcquireTerms): boolean {
    if (this.#isAllowed !== true) return false;
    return mode === 'write' && leaseMs <= maxLeaseMs && minFence === undefined && newest === undefined;
  }

  /**
   * Takes a lock that this process left free and thin: only one acquire may try XADD. Returns false if it did not. The acquire
   * goes to a script then, which makes a record of a hold of this process.
   */
  takeFree(record: string): boolean {
    const known = this.#known.get(record);
    if (known === undefined) return false;
    this.#known.delete(record);
    if (typeof known === 'number') return this.#clock.now().monoMs - known < this.#recordTtlMs;
    if (known.state === 'held') known.state = 'in a record';
    return false;
  }

  /**
   * Acquires a lock that is free and thin. Calls `onAnswered` when the server has replied; it returns whether the acquire may
   * arrive again. Leaves to `byScript` what only a script can tell. Rejects with a `LockStoreError` if the outcome is
   * unknown.
   */
  acquire(
    record: string,
    request: HoldRequest,
    leaseMs: number,
    onAnswered: () => boolean,
    byScript: () => Promise<AcquireReply>,
  ): Promise<AcquireReply> {
    const sent = this.sending();
    const { process, owner, holdId } = request;
    const commands: RedisCommand[] = [
      ['xadd', record, 'NOMKSTREAM', '*', `${process} ${owner} ${holdId}`, leaseMs],
      ['pexpire', record, leaseMs + this.#recordTtlMs, 'GT'],
      ['xrange', record, '-', '+', 'COUNT', 1],
    ];
    return this.#send('acquire', commands, ([added, kept, range]) => {
      const mayArriveLater = onAnswered();
      const first = (range as readonly (readonly [unknown])[] | undefined)?.[0];
      const [ms = 0, number = 0] = added ? String(added).split('-').map(Number) : [];
      const isFirst = added && first !== undefined && String(first[0]) === String(added);
      if (isFirst && number < fencesPerMs && kept !== undefined) {
        this.#hold(record, request, String(added), ms, leaseMs, sent);
        return Object.assign(readGrant(holdId, ms * fencesPerMs + number, leaseMs), { mayArriveLater });
      }
      // An entry may be there, and it may become the hold.
      const isEntryLeft = added || mayArriveLater;
      return isEntryLeft ? byScript().catch(afterAdding) : byScript();
    });
  }

  /** What to remember of an acquire that is about to be sent. */
  sending(): Sent {
    return { epoch: this.#driver.connectionEpoch(), sentAt: this.#clock.now() };
  }

  /** A script has granted the lock as a thin one. */
  granted(record: string, request: HoldRequest, fence: number, leaseMs: number, sent: Sent): void {
    const grantedMs = Math.floor(fence / fencesPerMs);
    this.#hold(record, request, `${grantedMs}-${fence % fencesPerMs}`, grantedMs, leaseMs, sent);
  }

  /** A script is about to be sent that makes a record of the lock: only a script can release the hold from then on. */
  inflated(request: HoldRequest): void {
    const hold = this.#holds.get(request);
    if (hold?.state === 'held') hold.state = 'in a record';
  }

  /** The reply to another acquire of a hold that was released without a script: only this process remembers that. */
  cancelled(request: HoldRequest): AcquireReply | undefined {
    const hold = this.#released(request);
    return hold && { status: 'cancelled', nowMs: hold.grantedMs, claims: [] };
  }

  /**
   * Releases a thin hold, of which no other call is open. Returns undefined if it is none. Leaves to `byScript` what only a
   * script can tell. Rejects with a `LockStoreError` if the outcome is unknown.
   */
  release(
    record: string,
    request: HoldRequest,
    tombstoneMs: number,
    byScript: () => Promise<ReleaseReply>,
  ): Promise<ReleaseReply> | undefined {
    const before = this.#released(request);
    if (before !== undefined) return Promise.resolve(releasedAt(before));
    const hold = this.#holds.get(request);
    if (hold?.state !== 'held' || !this.#driver.isSameEpoch(hold.epoch)) return undefined;
    // After that the hold may be over, and somebody else's.
    const now = this.#clock.now();
    if (elapsedMs(now, hold.sentAt) >= hold.leaseMs) return undefined;
    hold.state = 'maybe released';
    hold.rememberedUntilMs = now.monoMs + tombstoneMs;
    return this.#send('release', [['xdel', record, hold.entryId]], (replies) => {
      if (Number(replies[0]) === 1) {
        hold.state = 'released';
        this.#know(record, this.#clock.now().monoMs);
        return releasedAt(hold);
      }
      // Sent once, it has released nothing.
      if (this.#driver.isSameEpoch(hold.epoch)) this.#holds.delete(request);
      return byScript();
    });
  }

  /**
   * What the reply of a script to a release means. If the hold is gone before its lease is over, an earlier XDEL has
   * released it, the reply to which was lost.
   */
  settled(request: HoldRequest, reply: ReleaseReply): ReleaseReply {
    const hold = this.#holds.get(request);
    if (hold?.state !== 'maybe released' || reply.status !== 'absent') return reply;
    return reply.nowMs >= hold.grantedMs + hold.leaseMs ? reply : { ...reply, status: 'released' };
  }

  /** A hold that was released without a script, for as long as that is remembered. */
  #released(request: HoldRequest): ThinHold | undefined {
    const hold = this.#holds.get(request);
    if (hold?.state !== 'released') return undefined;
    if (hold.rememberedUntilMs > this.#clock.now().monoMs) return hold;
    this.#holds.delete(request);
    return undefined;
  }

  #know(record: string, known: ThinHold | number): void {
    this.#known.delete(record);
    if (this.#known.size >= maxKnown) for (const [oldest] of this.#known) if (this.#known.delete(oldest)) break;
    this.#known.set(record, known);
  }

  /** Calls `read` with the replies, or with the undefined ones of commands that the server refused. */
  #send<T>(
    operation: string,
    commands: readonly RedisCommand[],
    read: (replies: readonly unknown[]) => T | Promise<T>,
  ): Promise<T> {
    const onReplies = (replies: RedisReplies): T | Promise<T> => {
      const values = replies.map((reply) => {
        if (reply.status === 'fulfilled') return reply.value;
        const code = this.#driver.codeOf(reply.reason);
        if (code === undefined) throw storeError(this.#driver, operation, reply.reason);
        if (code === 'NOPERM') this.#isAllowed = false;
        return undefined;
      });
      return read(values);
    };
    return this.#driver.sendGroup(operation, commands).then(onReplies, (cause: unknown) => {
      throw storeError(this.#driver, operation, cause);
    });
  }

  #hold(record: string, request: HoldRequest, entryId: string, grantedMs: number, leaseMs: number, sent: Sent): void {
    const { epoch, sentAt } = sent;
    const hold = { entryId, epoch, sentAt, leaseMs, grantedMs, state: 'held', rememberedUntilMs: 0 } as const;
    this.#holds.set(request, hold);
    this.#know(record, hold);
  }

  /** Asks the server, by commands that change nothing, until it can tell. */
  #probed(): Promise<Probe> {
    this.#probe ??= this.#ask().then((probe) => {
      if (probe === 'unknown') this.#probe = undefined;
      else this.#isAllowed = probe === 'allowed';
      return probe;
    });
    return this.#probe;
  }

  async #ask(): Promise<Probe> {
    const key = this.#probeKey;
    const commands: RedisCommand[] = [
      ['xadd', key, 'NOMKSTREAM', '*', '-', '-'],
      ['pexpire', key, 1, 'GT'],
      ['xrange', key, '-', '+', 'COUNT', 1],
      ['xdel', key, '0-1'],
    ];
    const replies = await this.#driver.sendGroup('acquire', commands).catch(() => []);
    if (replies.length === 0) return 'unknown';
    const codes = replies.map((reply) =>
      reply.status === 'rejected' ? this.#driver.codeOf(reply.reason) : 'fulfilled',
    );
    if (codes.includes('NOPERM')) return 'no right';
    // Redis 7.0 introduced the conditions of PEXPIRE.
    if (codes.includes('ERR')) return 'too old';
    return codes.every((code) => code === 'fulfilled') ? 'allowed' : 'unknown';
  }
}

/** The entry that was added may become the hold: even if the script did nothing, the call was applied. */
function afterAdding({ message, cause }: Error): never {
  throw new LockStoreError(message, { cause, outcome: 'unknown' });
}

/** The server is not asked for its time: this is the last time that is known. */
function releasedAt({ grantedMs }: ThinHold): ReleaseReply {
  return { status: 'released', nowMs: grantedMs, claims: [] };
}
