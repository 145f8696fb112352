import { EventEmitter, once } from 'node:events';
import { type LockEvents, type LockStore, type Locks, type LocksOptions, MemoryStore, runInTrace } from 'reenlock';
import { RedisStore } from 'reenlock/redis';
import { type Clock, systemClock } from '../../src/core/base/clock.ts';
import { buildLocks } from '../../src/core/runtime/locks.ts';
import { StoreStage } from '../../src/testing/contract/stage.ts';
import { matrix } from '../support/matrix.ts';
import { RedisStage } from '../support/redis/redis-stage.ts';

/** A lease that is soon over, but not before an answer to its own acquire is here, however busy the machine is. */
export const briefMs = 400;
/** A lease that no test outlives. */
export const longMs = 60_000;

/** Services on one store. On Redis each has a connection of its own. */
export interface Services {
  /** What the store itself is asked, without a `Locks`: by clients that have died since, and by who looks. */
  readonly stage: StoreStage;
  /** On a clock that stands still, it is a process that was stopped. */
  service(options?: LocksOptions, clock?: Clock): Service;
}

/** One service: a `Locks` of its own on the store that all share. */
export class Service {
  readonly locks: Locks;
  readonly #seen = new Map<keyof LockEvents, number>();
  readonly #arrivals = new EventEmitter();

  constructor(store: LockStore, options: LocksOptions | undefined, clock: Clock) {
    this.locks = buildLocks({ store, ...options }, clock);
    for (const event of ['granted', 'waiting', 'renewed', 'released', 'lost'] as const) {
      this.locks.on(event, () => {
        this.#seen.set(event, this.seen(event) + 1);
        this.#arrivals.emit(event);
      });
    }
  }

  /** Runs a job of a trace in this service. */
  job<T>(traceId: string, routine: () => T | PromiseLike<T>): Promise<T> {
    return runInTrace(routine, { locks: this.locks, traceId });
  }

  /** How often something has happened in it. */
  seen(event: keyof LockEvents): number {
    return this.#seen.get(event) ?? 0;
  }

  /** Once it has happened that often. */
  async until(event: keyof LockEvents, times = 1): Promise<void> {
    while (this.seen(event) < times) await once(this.#arrivals, event);
  }
}

/** Runs the same tests on a Redis server, and in the whole matrix on the store in memory. */
export function describeStores(name: string, tests: (services: Services) => void): void {
  describe.each(matrix(['RedisStore'], () => ['MemoryStore']))(`${name}, on %s`, (kind) => {
    const redis = kind === 'RedisStore' ? new RedisStage() : undefined;
    const stage = redis ?? new StoreStage();
    const running: { close(): Promise<void> }[] = [];

    if (redis !== undefined) {
      beforeAll(() => redis.start([]));
      afterAll(() => redis.stop());
    }
    beforeEach(async () => {
      await redis?.client.flushall();
      stage.store = redis === undefined ? new MemoryStore() : new RedisStore({ client: redis.client });
    });
    afterEach(async () => {
      for (const one of running.splice(0)) await one.close();
      await stage.end();
    });

    tests({
      stage,
      service(options, clock = systemClock) {
        const client = redis?.connect();
        const service = new Service(client === undefined ? stage.store : new RedisStore({ client }), options, clock);
        running.push({
          async close() {
            await service.locks.close({ drainMs: 0 });
            client?.disconnect();
          },
        });
        return service;
      },
    });
  });
}
