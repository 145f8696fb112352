import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type AcquireOptions,
  type BatchHold,
  type Hold,
  type LockEvent,
  type LockEvents,
  type Locks,
  lock,
  resumeHold,
  runInTrace,
} from '../../src/core/index.ts';
import type { AcquireReply, LockStore, StoreMessage } from '../../src/core/model/store.ts';
import { gate } from '../support/gate.ts';
import { pathOf } from '../support/path-of.ts';
import type { Entry } from './history.ts';

/** A hold of a job of its own, with the name that the history has for it. */
export interface Held {
  readonly id: string;
  readonly hold: Hold;
  /** Gives it back and ends its job; rejects as the release does. */
  release(): Promise<void>;
}

/** What a job of the recorder's does; each call is written down. */
export interface Worker {
  acquire(key: string, options?: AcquireOptions): Promise<() => Promise<void>>;
  acquireAll(keys: readonly string[], options?: AcquireOptions): Promise<() => Promise<void>>;
  /** Acquires, and passes the hold on to a token. Resolves with what takes the hold up again, for this worker. */
  detach(key: string, leaseMs: number): Promise<() => Promise<() => Promise<void>>>;
}

const ends = {
  timeout: 'ERR_LOCK_TIMEOUT',
  aborted: 'ERR_LOCK_ABORTED',
  deadlock: 'ERR_LOCK_DEADLOCK',
  refused: 'ERR_LOCK_TIMEOUT',
} as const;

/**
 * Writes the history of one process: what its locks tell it, and what it does with them. Where it can't be exact, it errs
 * to the side on which less is claimed: a hold counts from after the grant was told, to before its release was called.
 */
export class Recorder {
  readonly #process: string;
  readonly #now: () => number;
  readonly #write: (entry: Entry) => void;
  readonly #seen = new Set<string>();
  /** Hold ids that were granted, and not yet matched with their holds, by owner and key. */
  readonly #granted = new Map<string, string[]>();
  readonly #held = new Map<string, Hold>();
  #locks: Locks | undefined;
  #last = 0;

  constructor(process: string, now: () => number, write: (entry: Entry) => void) {
    this.#process = process;
    this.#now = now;
    this.#write = write;
  }

  get locks(): Locks {
    return this.#locks as Locks;
  }

  /** A store that tells of every acquire and of every answer to a poll. Put it between the `Locks` and their store. */
  watched(store: LockStore): LockStore {
    return {
      capabilities: store.capabilities,
      acquire: async (request, terms): Promise<AcquireReply> => {
        const { id: key, owner, holdId: hold, mode, permits } = request;
        const isPoll = this.#seen.has(hold);
        if (!isPoll) this.#note('asked', { key, owner, hold, mode: mode === 'write' ? undefined : mode, permits });
        this.#seen.add(hold);
        const reply = await store.acquire(request, terms);
        if (isPoll) this.#note('polled', { key, owner, hold });
        return reply;
      },
      renew: (request, terms) => store.renew(request, terms),
      release: (request, terms) => store.release(request, terms),
      inspect: (id) => store.inspect(id),
      forceRelease: (id, fence) => store.forceRelease(id, fence),
      subscribe: (process, listener, options) =>
        store.subscribe(process, (message: StoreMessage) => listener(message), options),
      ...(store.edges && { edges: store.edges }),
      ...(store.transfer && { transfer: store.transfer.bind(store) }),
    };
  }

  /** Listens to a `Locks` whose store is `watched`. */
  follow(locks: Locks): Locks {
    this.#locks = locks;
    locks.on('waiting', (event) => this.#note('queued', askedBy(event)));
    for (const event of ['granted', 'resumed'] as const) {
      locks.on(event, (granted) => {
        const { key, owner, hold } = askedBy(granted);
        const name = `${owner} ${key}`;
        this.#granted.set(name, [...(this.#granted.get(name) ?? []), hold]);
      });
    }
    locks.on('detached', (event) => this.#note('released', askedBy(event)));
    locks.on('renewed', (event) => {
      for (const [hold, of] of this.#heldBy(event)) this.#note('renewed', { ...askedBy(event), hold }, of);
    });
    locks.on('released', (event) => {
      const { key, owner, hold } = askedBy(event);
      this.#note('released', { key, owner, hold });
      // One that a batch had before it was complete.
      const granted = this.#granted.get(`${owner} ${key}`);
      if (granted?.includes(hold)) granted.splice(granted.indexOf(hold), 1);
    });
    for (const [event, code] of Object.entries(ends) as [keyof typeof ends, string][]) {
      locks.on(event, (ended: LockEvents[typeof event]) => {
        if (this.#asked.has(ended.holdId)) this.#note('refused', { ...askedBy(ended), code });
      });
    }
    locks.on('lost', (event) => {
      this.#note('lost', askedBy(event));
      for (const [hold, of] of this.#heldBy(event)) {
        if (hold !== event.holdId && !of.isHeld()) this.#note('lost', { ...askedBy(event), hold });
      }
    });
    return locks;
  }

  /** Acquires in a job of its own, of a trace of its own unless one is named. */
  async acquire(key: string, options: AcquireOptions = {}, traceId?: string): Promise<Held> {
    this.#last += 1;
    const owner = traceId ?? `${this.#process}.${this.#last}`;
    const work = gate();
    return new Promise((resolve, reject) => {
      const job = async (): Promise<void> => {
        const inJob = AsyncLocalStorage.snapshot();
        const hold = await lock.acquire(key, options);
        const id = this.#granted.get(`${owner} ${key}`)?.shift() as string;
        this.#held.set(id, hold);
        this.#note('granted', { key, owner, hold: id, fence: hold.fence }, hold);
        const release = (): Promise<void> => {
          this.#note('releasing', { key, owner, hold: id });
          this.#held.delete(id);
          return inJob(() => hold.release()).finally(work.open);
        };
        resolve({ id, hold, release });
        await work;
      };
      runInTrace(job, { locks: this.locks, traceId: owner }).catch((error: { code?: string }) => {
        this.#refused(key, owner, error.code);
        reject(error);
      });
    });
  }

  /**
   * Runs a routine in a job of this trace; what it holds at its end is released by the job. Two jobs of one trace at once
   * are for two processes: this one could not tell their holds apart.
   */
  async job(owner: string, routine: (worker: Worker) => Promise<void>): Promise<void> {
    const worker: Worker = {
      acquire: async (key, options) => {
        const hold = await this.#told(owner, [key], () => lock.acquire(key, options));
        return this.#entered(owner, key, hold);
      },
      detach: async (key, leaseMs) => {
        const hold = await this.#told(owner, [key], () => lock.acquire(key));
        // From here on nobody relies on it, until it is resumed.
        this.leaving(owner, key, this.enter(hold));
        const token = await hold.detach({ leaseMs });
        return async () => this.#entered(owner, key, await resumeHold(token));
      },
      acquireAll: async (keys, options) => {
        const batch: BatchHold = await this.#told(owner, keys, () => lock.acquireAll(keys, options));
        const releases = [...batch.holds].map(([key, hold]) => this.#entered(owner, key, hold));
        // Those that were given back on the way.
        for (const key of keys) this.#refused(key, owner, undefined);
        return async () => {
          // One that was lost rejects, and the others are released all the same.
          const outcomes = await Promise.allSettled(releases.toReversed().map((release) => release()));
          const failure = outcomes.find(({ status }) => status === 'rejected');
          if (failure !== undefined) throw (failure as PromiseRejectedResult).reason;
        };
      },
    };
    await runInTrace(() => routine(worker), { locks: this.locks, traceId: owner });
  }

  /** Writes that a hold was granted, and returns what releases it. A hold without a grant re-entered another one. */
  #entered(owner: string, key: string, hold: Hold): () => Promise<void> {
    const id = this.#granted.get(`${owner} ${key}`)?.shift();
    if (id === undefined) return () => hold.release();
    this.#held.set(id, hold);
    this.#note('granted', { key, owner, hold: id, fence: hold.fence }, hold);
    return () => {
      this.leaving(owner, key, id);
      return hold.release();
    };
  }

  /** Writes that a branch has a hold, and returns its id: one of the recorder's if the branch entered what others around it hold. */
  enter(hold: Hold, owner: string = pathOf(hold)): string {
    const { key } = hold;
    this.#last += 1;
    const id = this.#granted.get(`${pathOf(hold)} ${key}`)?.shift() ?? `entered ${this.#last}`;
    this.#held.set(id, hold);
    this.#note('granted', { key, owner, hold: id, fence: hold.fence }, hold);
    return id;
  }

  /** What the grant of an event holds, and what was entered with it. */
  #heldBy({ key, traceId, holdId }: LockEvent): (readonly [id: string, hold: Hold])[] {
    return [...this.#held].filter(([id, hold]) => id === holdId || (hold.key === key && hold.traceId === traceId));
  }

  /** Writes that a hold is not relied on from here on. */
  leaving(owner: string, key: string, id: string): void {
    this.#note('releasing', { key, owner, hold: id });
    this.#held.delete(id);
  }

  /** Takes a key from its holders, whose fence was seen before. */
  async force(key: string): Promise<void> {
    const { holds } = await this.locks.inspect(key);
    const fence = Math.max(0, ...holds.map((hold) => hold.fence));
    if (fence === 0) return;
    this.#note('forced', { key, fence });
    await this.locks.forceRelease(key, { fence });
  }

  /** What was asked for by requests whose answers nobody waited for. */
  forget(): void {
    for (const [hold, asked] of this.#asked) {
      const [owner = '', key = ''] = asked.split(' ');
      this.#note('refused', { key, owner, hold });
    }
  }

  async #told<T>(owner: string, keys: readonly string[], acquire: () => Promise<T>): Promise<T> {
    try {
      return await acquire();
    } catch (error) {
      for (const key of keys) this.#refused(key, owner, (error as { code?: string }).code);
      throw error;
    }
  }

  /** Whatever was asked for this owner, and not granted. */
  #refused(key: string, owner: string, code: string | undefined): void {
    for (const [hold, asked] of this.#asked) {
      if (asked !== `${owner} ${key}`) continue;
      this.#note('refused', { key, owner, hold, code });
    }
  }

  readonly #asked = new Map<string, string>();

  #note(kind: Entry['kind'], what: Partial<Entry>, hold?: Hold): void {
    // Without a queue in the store, a newcomer stands behind the waiters of its process, and is asked for later or never.
    if (kind === 'asked' || kind === 'queued') this.#asked.set(what.hold as string, `${what.owner} ${what.key}`);
    else if (kind === 'granted' || kind === 'refused') this.#asked.delete(what.hold as string);
    // The time first: the process may be stopped between the two.
    const at = this.#now();
    const leftMs = hold?.remainingMs();
    this.#write({ at, kind, process: this.#process, ...what, leftMs });
  }
}

/** Whose acquire an event is about. */
function askedBy(event: LockEvent): { readonly key: string; readonly owner: string; readonly hold: string } {
  return { key: event.key, owner: pathOf(event), hold: event.holdId };
}
