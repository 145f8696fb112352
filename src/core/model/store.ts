import type { Link } from '../base/link.ts';
import type { HoldMode } from './types.ts';

/**
 * The contract of a store. `reenlock/testing/contract` has tests under each number, and runs unchanged against every store.
 *
 * An owner is a path (`owner.ts`). Its family on a key are the holds of its ancestors, its own among them.
 *
 * C1  A free key is granted at once: a fence, the lease's end and the store's time.
 * C2  While the lease of a hold lasts, the key is granted only to that owner and its descendants; but see C19.
 * C3  An owner with a family on the key overtakes the queue: it is granted at once, as far as C19 admits it.
 * C4  Every operation is idempotent by hold id: a repeated acquire returns the grant that it got, and adds nothing.
 * C5  If the key is not free, an acquire with `queue` is queued; without `queue` it is refused and leaves nothing. A
 *     store without the capability `queue` has a queue for each process, to which only this clause applies.
 * C6  First in, first out among live waiters of one priority. No new acquire overtakes a live waiter, with or without `queue`.
 *     Each degree of priority counts like ten seconds of waiting: a waiter that joins later than that is behind. A waiter that
 *     has a family on the key is ahead of all that have none, or whose deepest holder is less deep: a stranger ahead of it would
 *     wait for the holder, the holder for its nested call, and nobody would move.
 * C7  The release of an owner's last hold makes the next live waiter the holder in the same step, with a new fence and a
 *     lease of `claimMs` at most (a claim). The grant reaches the waiter's process in the stream, or in the reply if the
 *     releasing process is its own; never from inside the call.
 * C8  An acquire is also the poll: it returns granted, queued or cancelled. It queues a hold id that the store does not
 *     know at the tail, keeps its process live, frees expired holds and hands off. Its reply names the open claims of the
 *     calling process, of very many those that lapse first. The reply to any call names the claims that the call made. If the
 *     acquire names the newest waiter of its process, a queued reply shows whether the store has lost that one.
 * C9  A release removes the hold or the queue entry of its hold id, and is remembered for `tombstoneMs`: an acquire that
 *     arrives later returns cancelled. A repeat returns the same, or `absent`. A store may forget it at once if no acquire of the
 *     hold id can still arrive: all got their replies, on the connections on which they were sent.
 * C10 A renewal moves the lease's end to `leaseMs` from now, never nearer, and turns a claim into a lease. It never
 *     re-creates a hold: an ended lease, another fence or an unknown hold id is `lost`.
 * C11 A fence is max(last + 1, store time in µs): it rises with each change of owner, even after the store lost its data.
 * C12 A process that is unreachable, or let a claim lapse, is skipped until it polls. It keeps its place meanwhile, and after a
 *     poll it is not skipped as unreachable twice in a row. Entries of a process that has not polled for `livenessMs` are
 *     removed, a tenth of it later at the latest.
 * C13 The store's clock decides, by the lease's end and not by presence.
 * C14 Waiters of the owner that was just granted, and of its descendants, are granted with it, as far as C19 admits them. The
 *     others of them advance in the queue (C6).
 * C15 A force release with another fence does nothing. Otherwise every hold is removed, the next waiter is granted, and the
 *     holders' processes get a message in the stream.
 * C16 A queue of `maxWaiters` takes no more: `full`.
 * C17 `inspect` changes nothing and returns the holds, and the waiters in order, each with the process that asked for it; of
 *     very many the first ones.
 * C18 A failed call rejects with a `LockStoreError`; `not-applied` only if that is certain. If the store can't keep the
 *     key, its `cause` is a `LockKeyError`.
 * C19 Each hold has a limit: a writer's is 1, a reader has none, that of a permit is the number of permits. An owner is granted
 *     a hold if every other hold is of its family; or if the owners that hold then are at most the least limit of all holds.
 *     Holders of the family do not count, nor does one with a descendant among the other holders. (Without `modes`, every
 *     hold is a writer's.) There is one queue for all: a reader behind a writer waits, and readers in a row are granted
 *     together. Of a very long row one call may grant a part; a message makes the process of the next reader ask, and nobody
 *     else is granted meanwhile. Each hold has its own lease; an owner may have any number of holds, of any mode.
 * C20 An owner whose family reads with others, and that asks to write, is in `conflict`, with or without `queue`: it would
 *     wait for its own family. The same holds for any hold whose limit is less than that of all others. When the hold with
 *     the least limit is gone, the waiters that are admitted now are granted.
 * C21 Replies name the last fence for all holds of a key. A reader that joins others shares it, and so does an owner whose family
 *     holds with no greater limit. Otherwise the fence rises: no other owner ever wrote under the fence of a writer. A hold
 *     is renewed with the fence that it got, or a later one of the key.
 * C22 A grant has the number of other holds of its family on the key, and of those with its owner, of which a reader counts
 *     no readers: in the reply to its acquire, among the claims of another reply, and in the stream.
 * C23 With `list`, pages name every lock that was held or waited for during the whole listing, and none that never was.
 * C24 With `minFence`, a new fence is at least the one named, and later fences are greater. A repeat raises the fence of a
 *     hold that is alone on its key to just that. At re-entry it has no effect.
 * C25 A release that asks for it announces a key that it leaves free to every process that subscribed for that, and to no
 *     other.
 * C26 With `edges`, an owner's edges are those that were set and not cleared, each until `ttlMs` after it was last set.
 * C27 With `edges`, `wait` returns in one step since when a hold id is queued, if it is, and the holders with their holds
 *     and fences. It changes nothing.
 * C28 A reply without a grant has the number of waiters ahead: of a queued hold id, otherwise of all.
 * C29 With `transfer`, a hold passes to another hold id, of another owner and process, in one step: nobody is granted the key
 *     in between. The new hold has the requested lease, and a fence as if the old hold had been released before; if the new owner
 *     is an ancestor of the old one, the fence stays. The old hold id is remembered as released. A repeat returns the grant of the
 *     new hold id. Waiters that are granted with it learn of it by messages, those of the calling process, too. If the old hold id
 *     has no hold, or the new one was released before, it is `lost`. If the new owner is no ancestor, and an ancestor or a descendant
 *     of the old one, or the old one itself, has another hold, it is `shared`, unless all holds are readers'. Both change nothing.
 * C30 With `permits`, a hold has the mode `permit` and a number of permits. A release that leaves a permit free makes the next
 *     live waiter a holder (C7). `inspect` returns how many permits there are.
 */
export interface LockStore {
  readonly capabilities: StoreCapabilities;
  /** The connection to the server: calls wait for it, and in an outage they fail at once. Absent if the client does not report it. */
  readonly link?: Link | undefined;
  acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply>;
  renew(request: HoldRequest, terms: RenewTerms): Promise<RenewReply>;
  release(request: HoldRequest, terms: ReleaseTerms): Promise<ReleaseReply>;
  /** Present with the capability of that name. Both requests have the same `id`, `mode` and `permits`. */
  transfer?(from: HoldRequest, to: HoldRequest, terms: TransferTerms): Promise<TransferReply>;
  inspect(id: string): Promise<InspectReply>;
  /** Present with the capability of that name. */
  readonly edges?: EdgeStore | undefined;
  forceRelease(id: string, fence: number): Promise<boolean>;
  /** A page of the locks that are held or waited for; absent in a store that can't name its keys. */
  list?(request: ListRequest): Promise<ListReply>;
  /** Streams messages to one process. Resolves once active, with a function that ends it; the last one closes the connection. */
  subscribe(process: string, listener: StoreListener, options?: SubscribeOptions): Promise<Unsubscribe>;
  /** For how many ms, at least, it has not restarted. Absent if its data outlives restarts, or ends with its callers. */
  uptimeMs?(): Promise<number>;
}

/** The abilities of a store; no code checks for a certain store. */
export interface StoreCapabilities {
  /** Whether the waiters of all processes stand in one queue. Without it, each process has its own queue. */
  readonly queue: boolean;
  /** Whether a release makes the next waiter the holder. */
  readonly handOff: boolean;
  /** Whether it knows when a process does not receive its messages. */
  readonly reachability: boolean;
  /** Whether readers can share. */
  readonly modes: boolean;
  /** Whether a key can have permits, for several owners at once. Without it, they are refused. */
  readonly permits?: boolean;
  /** Whether its locks exclude other processes. */
  readonly shared: boolean;
  /** Whether it supports `minFence`. Without it, it can't be one of a quorum. */
  readonly minFence?: boolean;
  /** Whether it keeps the edges of waiters. Without it, no deadlock is found. */
  readonly edges?: boolean;
  /** Whether a hold can pass to another hold id. Without it, no hold can be detached. */
  readonly transfer?: boolean;
  /** The longest lease that it grants, in milliseconds. Default: no limit. */
  readonly maxLeaseMs?: number;
}

/** The waits of each owner. An edge counts while its hold id is in the queue. No call concerns two keys or owners. */
export interface EdgeStore {
  /** Sets an edge, or makes it last longer. */
  set(owner: string, edge: WaitEdge, ttlMs: number): Promise<void>;
  clear(owner: string, edge: WaitEdge): Promise<void>;
  /** The edges of an owner; some of very many. */
  of(owner: string): Promise<readonly WaitEdge[]>;
  wait(request: HoldRequest): Promise<WaitReply>;
}

/** One wait of an owner: where to check that it still waits, and how to name the wait in messages. */
export interface WaitEdge {
  readonly request: HoldRequest;
  readonly traceId: string;
  /** The key as the application wrote it. */
  readonly key: string;
}

/** The wait of a hold id (C27). */
export interface WaitReply {
  /** Since when the hold id is in the queue, on the store's clock; undefined if it is not. */
  readonly sinceMs: number | undefined;
  readonly holds: readonly { readonly holdId: string; readonly owner: string; readonly fence: number }[];
}

/** One hold, requested or granted: every call about it carries the same object, with everything known about it. */
export interface HoldRequest {
  /** The lock's encoded name, `LockName.id`. */
  readonly id: string;
  readonly holdId: string;
  readonly owner: string;
  /** The random name of the calling process: grants are published under it. */
  readonly process: string;
  /** How long a handed-off grant lasts until its first renewal. */
  readonly claimMs: number;
  readonly mode: HoldMode;
  /** How many owners may hold the key at once; given with the mode `permit` alone. */
  readonly permits?: number | undefined;
  /** A whole number, -100 to 100: each degree stands for ten seconds of waiting. */
  readonly priority: number;
}

/** The terms of one acquire; durations are milliseconds. */
export interface AcquireTerms {
  readonly leaseMs: number;
  /** Whether to wait in the queue if the key is not free. */
  readonly queue: boolean;
  readonly maxWaiters: number;
  /** How long the process counts as live after this call. */
  readonly livenessMs: number;
  /** A new fence is at least this (C24). */
  readonly minFence?: number | undefined;
  /** The newest waiter of the process for this lock (C8): a failover loses the newest. */
  readonly newest?: HoldRequest | undefined;
}

/** The terms of one renewal: the fence of the grant, and the new lease in milliseconds from now. */
export interface RenewTerms {
  readonly fence: number;
  readonly leaseMs: number;
}

/** The terms of one release; durations are milliseconds. */
export interface ReleaseTerms {
  /** How long to remember the hold id; 0: not at all. */
  readonly tombstoneMs: number;
  /** Whether to send a message to subscribed processes if this leaves the key free. It may get lost, like any message. */
  readonly announce?: boolean;
}

/** The terms of one transfer; durations are milliseconds. */
export interface TransferTerms {
  readonly leaseMs: number;
  readonly tombstoneMs: number;
}

/** A grant; times are milliseconds on the store's clock. */
export interface StoreGrant {
  readonly holdId: string;
  readonly fence: number;
  readonly endMs: number;
  /** Whether it was handed off and not renewed yet: it lasts `claimMs`. */
  readonly isClaim: boolean;
}

/** A grant, for its waiter. A store that does not know the numbers leaves them out. */
export interface WaiterGrant extends StoreGrant {
  /** How many other holds its family has on the key. */
  readonly otherHolds?: number | undefined;
  /** How many of those are of the very same owner, and would exclude this one otherwise: readers do not exclude each other. */
  readonly equalHolds?: number | undefined;
}

interface Reply {
  /** The store's clock at the reply. */
  readonly nowMs: number;
  /** Other claims on this key that the calling process has open. */
  readonly claims: readonly WaiterGrant[];
}

interface AcquireReplyBase extends Reply {
  /**
   * Whether another copy of this acquire, or of an earlier one of the same hold id, may still reach the store; absent if unknown.
   * If it may, the caller must release the hold id after a refusal: it would not learn of a late grant.
   */
  readonly mayArriveLater?: boolean;
}

/** The reply to an acquire; times are milliseconds on the store's clock, others are durations. */
export type AcquireReply = AcquireReplyBase &
  (
    | { readonly status: 'granted'; readonly grant: WaiterGrant }
    | {
        readonly status: 'queued';
        /** Whether the store did not know the hold id before this call. */
        readonly isNew: boolean;
        readonly leaseRemainingMs: number;
        /** How many waiters are before it. */
        readonly position: number;
        /** Whether the call named a `newest` that is not in the queue. */
        readonly isNewestLost?: boolean | undefined;
      }
    /** `conflict`: its family reads with others, and it can't wait for that. */
    | { readonly status: 'refused' | 'full' | 'conflict'; readonly leaseRemainingMs: number; readonly position: number }
    | { readonly status: 'cancelled' }
  );

/** The new end of the lease, on the store's clock; `lost` if there is no lease to renew. */
export type RenewReply =
  | { readonly status: 'renewed'; readonly endMs: number; readonly nowMs: number }
  | { readonly status: 'lost' };

/** The new hold's grant. `lost`: there was no hold to pass on. `shared`: its branch has others (C29). */
export type TransferReply =
  | { readonly status: 'granted'; readonly grant: StoreGrant; readonly nowMs: number }
  | { readonly status: 'lost' | 'shared' };

/**
 * `released`: it held. `expired`: its lease had ended, but nobody had taken the key. `cancelled`: it was queued.
 * `absent`: neither; the key may have changed hands.
 */
export interface ReleaseReply extends Reply {
  readonly status: 'released' | 'expired' | 'cancelled' | 'absent';
  /** Whether this may be the reply to a second copy of the call: then `absent` shows nothing. Absent if unknown. */
  readonly mayHaveArrivedBefore?: boolean;
}

/** The holders, and the waiters in order; times are milliseconds on the store's clock. */
export interface InspectReply {
  readonly nowMs: number;
  readonly holds: readonly StoreHold[];
  readonly waiters: readonly StoreWaiter[];
  /** How many permits the key has; absent without permits. */
  readonly permits?: number | undefined;
}

/** A hold; times are milliseconds on the store's clock. */
export interface StoreHold extends StoreGrant {
  readonly owner: string;
  readonly process: string;
  readonly mode: HoldMode;
}

/** A waiter; times are milliseconds on the store's clock. */
export interface StoreWaiter {
  readonly holdId: string;
  readonly owner: string;
  readonly process: string;
  readonly mode: HoldMode;
  readonly priority: number;
  readonly sinceMs: number;
}

/** Which locks to list, and from where. */
export interface ListRequest {
  /** The beginning of the encoded names; may be empty. */
  readonly idPrefix: string;
  /** About how many names to read. */
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** A page of locks: it may be empty, and still not be the last. */
export interface ListReply {
  readonly locks: readonly (InspectReply & { readonly id: string })[];
  /** The locks whose record has a format of another version of the package. */
  readonly unreadable?: readonly string[] | undefined;
  /** Asks for the next page; absent after the last. */
  readonly cursor?: string | undefined;
  /** About how many names a whole listing visits; absent if unknown. */
  readonly total?: number | undefined;
}

/** The messages to a process; any of them may get lost. */
export type StoreMessage =
  /** A waiter of this process was granted. */
  | { readonly kind: 'granted'; readonly grant: WaiterGrant }
  /** A hold of this process was taken from it. */
  | { readonly kind: 'lost'; readonly holdId: string }
  /** The store has granted a part of a long row of readers: a poll for this hold id, the next of them, continues. */
  | { readonly kind: 'next'; readonly holdId: string }
  /** A release that asked for an announcement left this key free. */
  | { readonly kind: 'freed'; readonly id: string }
  /** Messages may have been missed. */
  | { readonly kind: 'resubscribed' }
  /** The server is set up in a way that locks suffer from. */
  | ({ readonly kind: 'warning' } & ServerWarning)
  /** The stream has a fault; it recovers by itself. */
  | { readonly kind: 'fault'; readonly error: Error };

/** How a server is set up in a way that locks suffer from. */
export interface ServerWarning {
  /** As it stands in docs/reference/errors.md. */
  readonly code: string;
  readonly message: string;
}

/** Called asynchronously, never from inside a store call. Must not throw. */
export type StoreListener = (message: StoreMessage) => void;

/** Which further messages a stream sends. */
export interface SubscribeOptions {
  /** Whether to send `freed` messages, too. */
  readonly freed?: boolean;
}

/** Ends a stream. Resolves after its last message. */
export type Unsubscribe = () => Promise<void>;
