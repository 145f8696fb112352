import { type Clock, elapsedMs, type Instant, outsideRequests, type Timer } from '../../core/base/clock.ts';
import { inBackground } from '../../core/base/safely.ts';
import { isAncestor } from '../../core/model/owner.ts';
import type { AcquireReply, AcquireTerms, HoldRequest, LockStore, StoreListener } from '../../core/model/store.ts';

const firstPauseMs = 50;
const minPauseMs = 5;
/** After this many refusals in a row, only polls and announcements lead to another try. */
const maxQuickTries = 5;

type GrantReply = Extract<AcquireReply, { status: 'granted' }>;

interface Waiter {
  readonly request: HoldRequest;
  terms: AcquireTerms;
  isCancelled: boolean;
  /** What a try without a poll was granted, and when that was sent. */
  granted?: { readonly reply: GrantReply; readonly sent: Instant };
}

/** The waiters of this process for one key, in their order. */
export class Line {
  readonly #id: string;
  readonly #store: LockStore;
  readonly #clock: Clock;
  /** The listener for a grant without a poll, by process. */
  readonly #listeners: ReadonlyMap<string, StoreListener>;
  readonly #onEmpty: () => void;
  readonly #waiters = new Map<string, Waiter>();
  /** How many tries without a poll were refused or failed, one after the other. */
  #refusals = 0;
  /** Whether a try without a poll is in flight. */
  #isTrying = false;
  /** Whether another try must follow that one. */
  #mustFollow = false;
  /** How many releases were announced. */
  #freed = 0;
  /** For the next try. Started while there are waiters, cleared when the last one leaves. */
  #timer: Timer | undefined;
  /** Whether the timer was started by an announcement. */
  #isWoken = false;

  constructor(
    id: string,
    store: LockStore,
    clock: Clock,
    listeners: ReadonlyMap<string, StoreListener>,
    onEmpty: () => void,
  ) {
    this.#id = id;
    this.#store = store;
    this.#clock = clock;
    this.#listeners = listeners;
    this.#onEmpty = onEmpty;
  }

  get size(): number {
    return this.#waiters.size;
  }

  /** The acquire of a newcomer, which does not wait if this fails; or the poll of a waiter. */
  async acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    const { holdId, owner } = request;
    const known = this.#waiters.get(holdId);
    const waiter = known ?? { request, terms, isCancelled: false };
    waiter.terms = terms;
    // Also if too many wait: it may leave again after the reply.
    this.#waiters.set(holdId, waiter);
    const since = this.#clock.now();
    try {
      const reply = await this.#replyTo(waiter, known !== undefined);
      if (reply.status === 'refused')
        return grantOf(waiter, since) ?? this.#asWaiting(reply, waiter, known === undefined);
      this.#remove(holdId);
      if (reply.status === 'granted') this.#onGranted(owner);
      return reply;
    } catch (error) {
      const granted = grantOf(waiter, since);
      if (granted !== undefined) return granted;
      if (known === undefined) this.#remove(holdId);
      throw error;
    }
  }

  /** Takes out a waiter that gives up. */
  cancel(holdId: string): void {
    const waiter = this.#waiters.get(holdId);
    if (waiter === undefined) return;
    waiter.isCancelled = true;
    this.#remove(holdId);
  }

  /** Called when a release is announced. Many servers may announce the same one: one try should see them all. */
  onFreed(): void {
    this.#freed += 1;
    this.#trySoon();
  }

  get #first(): Waiter | undefined {
    return this.#waiters.values().next().value;
  }

  /** Only the first in line and an owner with a family on the key may try: others only look. */
  async #replyTo(waiter: Waiter, isPoll: boolean): Promise<AcquireReply> {
    if (waiter === this.#first) {
      const reply = await this.#ask(waiter);
      if (reply.status === 'refused') this.#letHoldersIn();
      return reply;
    }
    const { holds, nowMs } = await this.#store.inspect(this.#id);
    if (waiter.isCancelled) return { status: 'cancelled', nowMs, claims: [] };
    // Also if it was granted meanwhile: the store repeats that.
    if (holds.some(({ owner }) => isAncestor(owner, waiter.request.owner))) return this.#ask(waiter);
    // It was granted too late, and has joined again behind others: the process polls for it, and not for the first one.
    if (isPoll) inBackground(this.#tryFirst());
    const leaseRemainingMs = Math.max(0, ...holds.map(({ endMs }) => endMs - nowMs));
    return { status: 'refused', leaseRemainingMs, position: 0, nowMs, claims: [] };
  }

  async #ask({ request, terms }: Waiter): Promise<AcquireReply> {
    const freed = this.#freed;
    const reply = await this.#store.acquire(request, { ...terms, queue: false });
    // The refusal may be older than the release, and a try meanwhile may have got the same one.
    if (reply.status === 'refused' && this.#freed !== freed) this.#trySoon();
    return reply;
  }

  /** A refusal, in the form of a store with a queue. */
  #asWaiting(
    { leaseRemainingMs, nowMs, claims }: Extract<AcquireReply, { leaseRemainingMs: number }>,
    waiter: Waiter,
    isNew: boolean,
  ): AcquireReply {
    const position = [...this.#waiters.values()].indexOf(waiter);
    if (position < 0) return { status: 'cancelled', nowMs, claims };
    const state = { leaseRemainingMs, position, nowMs, claims };
    if (isNew && position >= waiter.terms.maxWaiters) {
      this.#remove(waiter.request.holdId);
      return { ...state, status: 'full' };
    }
    if (this.#timer === undefined) this.#tryLater();
    // Without `mayArriveLater`, since the tries without a poll go on.
    return { ...state, status: 'queued', isNew };
  }

  /** Returns whether it was in line. */
  #remove(holdId: string): boolean {
    if (!this.#waiters.delete(holdId)) return false;
    if (this.size > 0) return true;
    this.#timer?.cancel();
    this.#onEmpty();
    return true;
  }

  #trySoon(): void {
    if (this.#isTrying) this.#mustFollow = true;
    else if (!this.#isWoken) {
      this.#tryIn(1 + 9 * this.#clock.jitter());
      this.#isWoken = true;
    }
  }

  /** After a pause with full jitter that grows with each refusal. */
  #tryLater(): void {
    if (this.#isTrying || this.#refusals >= maxQuickTries) return;
    this.#tryIn(Math.max(minPauseMs, this.#clock.jitter() * firstPauseMs * 2 ** this.#refusals));
  }

  #tryIn(ms: number): void {
    this.#timer?.cancel();
    this.#isWoken = false;
    if (this.size === 0) return;
    const onDue = (): void => {
      this.#timer = undefined;
      this.#isWoken = false;
      inBackground(this.#tryFirst());
    };
    this.#timer = outsideRequests(() => this.#clock.after(ms, onDue));
  }

  async #tryFirst(): Promise<void> {
    const first = this.#first;
    if (first === undefined || this.#isTrying) return;
    this.#isTrying = true;
    this.#mustFollow = false;
    const status = await this.#try(first);
    this.#isTrying = false;
    if (status === 'granted') this.#onGranted(first.request.owner);
    else {
      this.#refusals += 1;
      if (status === 'refused') this.#letHoldersIn();
      this.#tryLater();
    }
    if (this.#mustFollow) this.#trySoon();
  }

  /** The waiters of its owner and of its descendants are granted with it. The others begin again with short pauses. */
  #onGranted(owner: string): void {
    this.#letIn([owner]);
    this.#refusals = 0;
    this.#tryLater();
  }

  /** Tries without a poll, and sends the waiter its grant. Returns the store's status, if it replied. */
  async #try(waiter: Waiter): Promise<AcquireReply['status'] | undefined> {
    const { holdId, process } = waiter.request;
    // Without a stream, only a poll can deliver it.
    if (!this.#listeners.has(process)) return undefined;
    const sent = this.#clock.now();
    try {
      const reply = await this.#ask(waiter);
      if (reply.status === 'granted' && this.#remove(holdId)) {
        waiter.granted = { reply, sent };
        this.#listeners.get(process)?.({ kind: 'granted', grant: reply.grant });
      }
      return reply.status;
    } catch {
      return undefined; // The next poll fails as well, and reports it.
    }
  }

  /** Lets the waiters with a family on the key try: the family may have got the key in other processes. */
  #letHoldersIn(): void {
    if (this.size <= 1) return;
    this.#store.inspect(this.#id).then(
      ({ holds }) => this.#letIn(holds.map(({ owner }) => owner)),
      () => {}, // The next poll fails as well, and reports it.
    );
  }

  #letIn(owners: readonly string[]): void {
    for (const waiter of this.#waiters.values()) {
      if (owners.some((owner) => isAncestor(owner, waiter.request.owner))) inBackground(this.#try(waiter));
    }
  }
}

/**
 * What a try was granted while another call for the same waiter was on its way. The lease of its reply is counted from the time when
 * that call was sent.
 */
function grantOf({ granted }: Waiter, since: Instant): GrantReply | undefined {
  return granted && { ...granted.reply, nowMs: granted.reply.nowMs + elapsedMs(since, granted.sent) };
}
