import { EventEmitter, once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { Redis } from 'ioredis';
import { getLock, Locked, LockLostError, lock, traceHeaders } from 'reenlock';
import { lockOn, traceContext } from 'reenlock/express';
import { key } from '../../src/testing/contract/stage.ts';
import { ManualClock } from '../support/clock/manual-clock.ts';
import { pathOf } from '../support/path-of.ts';
import { useRedis } from '../support/redis/redis-stage.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { outcomeOf } from '../support/stores/set-up.ts';
import { until } from '../support/until.ts';
import { briefMs, describeStores, longMs, type Service } from './services.ts';

const orderKey = (id: string) => `order:${id}`;
const counts = (...keys: string[]) => keys.map((one) => getLock(one).holdCount());

describeStores('ReenLock', ({ stage, service }) => {
  const owners = async (id: string = key) => (await stage.inspect(id)).holds.map(({ owner }) => owner);
  const isFree = async (other: Service, name: string, options = {}) => {
    return other.job('other', async () => (await lock.tryAcquire(name, options)) !== null);
  };

  /** A service that answers with what a job for an order, below a guard, comes to. */
  async function served<T>(one: Service, work: (id: string) => Promise<unknown>, use: (url: string) => Promise<T>) {
    const app = express();
    app.use(traceContext({ locks: one.locks, trust: 'all' }));
    app.post(
      '/guarded/:id',
      lockOn((req) => orderKey(req.params.id!)),
      async (req, res) => void res.json(await work(req.params.id)),
    );
    app.post('/plain/:id', async (req, res) => void res.json(await work(req.params.id)));
    const server = app.listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      return await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    } finally {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    }
  }

  const post = async (url: string, headers: Record<string, string> = {}) =>
    (await fetch(url, { method: 'POST', headers })).json();

  it("a key locked by another trace can't be locked; by the same trace: count + 1, across threads *and services*", async () => {
    const [one, two] = [service(), service()];
    await served(
      two,
      async (id) => (await lock.tryAcquire(orderKey(id)))?.fence ?? null,
      (url) =>
        one.job('trace', () =>
          lock.run(orderKey('42'), async ({ fence }) => {
            await Promise.all([0, 1].map(() => lock.run(orderKey('42'), (inner) => expect(inner.fence).toBe(fence))));
            expect(await post(`${url}/plain/42`, traceHeaders())).toBe(fence);
            expect(await post(`${url}/plain/42`, { 'X-Trace-Id': 'another' })).toBeNull();
            expect(await post(`${url}/plain/43`, { 'X-Trace-Id': 'another' })).toEqual(expect.any(Number));
          }),
        ),
    );
  });

  it('nested business flow: lock(order) { lock(order) create order, snapshot, payment, payment unit } each layer unlocking its own', async () => {
    const one = service();
    const steps: string[] = [];
    const row = (name: string, inner: () => Promise<unknown> = async () => {}) =>
      lock.run(key, async () => {
        steps.push(`${name} ${counts(key)}`);
        await inner();
        steps.push(`${name} ends ${counts(key)}`);
      });
    const acquires = jest.spyOn(one.locks.settings.store!, 'acquire');
    await one.job('trace', () =>
      lock.run(key, async () => {
        await row('order');
        await row('snapshot');
        await row('payment', () => row('payment unit'));
        expect(await owners()).toEqual(['trace']);
      }),
    );
    expect(steps).toEqual([
      'order 2',
      'order ends 2',
      'snapshot 2',
      'snapshot ends 2',
      'payment 2',
      'payment unit 3',
      'payment unit ends 3',
      'payment ends 2',
    ]);
    expect(acquires).toHaveBeenCalledTimes(1);
    acquires.mockRestore();
    expect(await owners()).toEqual([]);
  });

  it('jobs and requests lock the same row at the lowest layer', async () => {
    const [one, two] = [service(), service()];
    let inside = 0;
    let units = 20;
    const takeUnit = (id: string) =>
      lock.run(orderKey(id), async () => {
        expect(++inside).toBe(1);
        const before = units;
        await new Promise((resolve) => setImmediate(resolve));
        units = before - 1;
        inside -= 1;
        return units;
      });
    await served(one, takeUnit, async (url) => {
      const requests = Array.from({ length: 10 }, (_, i) => post(`${url}/${i % 2 ? 'guarded' : 'plain'}/42`));
      const jobs = Array.from({ length: 10 }, (_, i) => two.job(`job-${i}`, () => takeUnit('42')));
      const left = await Promise.all([...requests, ...jobs]);
      expect((left as number[]).sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, i) => i));
    });
  });

  it('annotation with a key expression and a category', async () => {
    const [one, two] = [service(), service()];
    class Payments {
      @Locked((order) => order.id, { category: 'order' })
      async pay(order: { readonly id: string }): Promise<boolean[]> {
        return [await isFree(two, order.id), await isFree(two, order.id, { category: 'order' })];
      }
    }
    expect(await one.job('trace', () => new Payments().pay({ id: '42' }))).toEqual([true, false]);
    expect(await isFree(two, '42', { category: 'order' })).toBe(true);
  });

  it('batch annotation over a list of keys', async () => {
    const [one, two] = [service(), service()];
    class Orders {
      @Locked((orders) => orders.map(({ id }) => orderKey(id)))
      async close(orders: readonly { readonly id: string }[]): Promise<number[]> {
        return counts(...orders.map(({ id }) => orderKey(id)));
      }
    }
    const list = (...ids: string[]) => ids.map((id) => ({ id }));
    expect(await one.job('trace', () => new Orders().close(list('2', '1', '2')))).toEqual([1, 1, 1]);
    const both = ['order:2', 'order:1'];
    await one.job('trace', () =>
      lock.runAll(both, async ({ holds }) => {
        expect([...holds.keys()]).toEqual(both);
        // All or none, in whatever order.
        await two.job('another', async () => {
          const outcome = outcomeOf(lock.acquireAll(['order:1', 'order:0'], { waitMs: 0 }));
          await outcome.settled;
          expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_TIMEOUT', key: 'order:1' });
          expect(counts('order:1', 'order:0')).toEqual([0, 0]);
        });
        const batch = await lock.acquireAll([...both].reverse());
        expect(counts(...both)).toEqual([2, 2]);
        await batch.release();
      }),
    );
    const circle = (list: string[]) => (_: unknown, i: number) =>
      one.job(`${list.join('-')}-${i}`, () => lock.runAll(list, () => {}));
    const rounds = Array.from({ length: 10 });
    await Promise.all([...rounds.map(circle(['a', 'b'])), ...rounds.map(circle(['b', 'a']))]);
    const all = ['order:0', 'order:1', 'order:2', 'a', 'b'];
    await until(async () => (await Promise.all(all.map((id) => owners(id)))).flat().length === 0);
  });

  it('direct lock/unlock with category, key, trace id, expiry; unlock in `finally`', async () => {
    const [one, two] = [service(), service()];
    const options = { category: 'order', leaseMs: longMs, renew: false } as const;
    await one.job('my-trace', async () => {
      const hold = await lock.acquire('42', options);
      try {
        expect([pathOf(hold), hold.key]).toEqual(['my-trace', '42']);
        expect(hold.remainingMs()).toBeGreaterThan(longMs / 2);
        expect(await isFree(two, '42', { category: 'order' })).toBe(false);
      } finally {
        await hold.release();
      }
      expect(await isFree(two, '42', { category: 'order' })).toBe(true);
      await lock.acquire('42', options);
      await lock.release('42', { category: 'order' });
      expect(await isFree(two, '42', { category: 'order' })).toBe(true);
    });
  });

  it('a function passed in, with arguments and result, locked before and unlocked after', async () => {
    const [one, two] = [service(), service()];
    const add = async (a: number, b: number) => [a + b, await isFree(two, key)];
    const failure = new Error('of the function');
    await one.job('trace', async () => {
      expect(await getLock(key).run(() => add(2, 3))).toEqual([5, false]);
      const failing = () => {
        throw failure;
      };
      await expect(getLock(key).run(failing)).rejects.toBe(failure);
      expect(await isFree(two, key)).toBe(true);
    });
  });

  it('release after expiry, nobody took it: fine. Taken by another trace: release fails and the transaction must roll back', async () => {
    const [one, two] = [service(), service()];
    const fixed = { leaseMs: briefMs, renew: false } as const;
    await one.job('trace', async () => {
      const fine = await lock.acquire(key, fixed);
      while (fine.isHeld()) await new Promise((resolve) => setImmediate(resolve));
      await fine.release();

      // Told before the write, where its own clock can tell it; and the write can be refused, by the fence.
      const late = await lock.acquire(key, fixed);
      const thief = await two.job('thief', () => lock.run(key, ({ fence }) => fence));
      expect(() => late.assertHeld()).toThrow(LockLostError);
      expect(thief).toBeGreaterThan(late.fence);
    });
    await one.job('writer', async () => {
      const work = async () => {
        await two.job('thief', () => lock.run(key, () => {}));
        return 'written';
      };
      const outcome = outcomeOf(lock.run(key, work, fixed));
      await outcome.settled;
      expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_LOST', value: 'written' });
    });
    // A process that was stopped meanwhile still believes that it holds, until it releases.
    const stopped = service({}, new ManualClock());
    await stopped.job('stopped', async () => {
      const hold = await lock.acquire(key, fixed);
      await two.job('thief', () =>
        lock.run(key, async ({ fence }) => {
          expect(hold.isHeld()).toBe(true);
          await expect(hold.release()).rejects.toThrow(LockLostError);
          expect((await stage.inspect()).holds).toMatchObject([{ owner: 'thief', fence }]);
        }),
      );
    });
  });

  it('nested lock prolongs the lease; proposal: only the first acquire sets it', async () => {
    const one = service();
    await one.job('trace', async () => {
      const first = await lock.acquire(key, { leaseMs: 5_000, maxHoldMs: 20_000, renew: false });
      await lock.run(key, () => {}, { leaseMs: 1_000, renew: false });
      expect(first.remainingMs()).toBeLessThanOrEqual(5_000);
      await lock.run(
        key,
        async () => {
          await one.until('renewed');
          // Prolonged, and never beyond what the first acquire has set.
          expect(first.remainingMs()).toBeGreaterThan(5_000);
          expect(first.remainingMs()).toBeLessThanOrEqual(20_000);
          const { holds, nowMs } = await stage.inspect();
          expect(holds[0]!.endMs - nowMs).toBeLessThanOrEqual(20_000);
        },
        { leaseMs: longMs, maxHoldMs: longMs, renew: false },
      );
    });
  });

  it('not considered there: queued waiting, priorities, read locks', async () => {
    const [one, two] = [service(), service()];
    const order: string[] = [];
    const both = getLock(key, { mode: 'read' });
    const jobs = await one.job('holder', () =>
      getLock(key).run(async () => {
        const started: Promise<unknown>[] = [];
        const ask = async (name: string, routine: () => Promise<unknown>) => {
          started.push(two.job(name, routine));
          await two.until('waiting', started.length);
        };
        const write = (name: string, priority: number) =>
          ask(name, () => getLock(key, { priority }).run(() => void order.push(name)));
        await write('first', 0);
        // Each of the two readers waits inside for the other.
        const [met, meet] = [new Set<string>(), new EventEmitter()];
        for (const name of ['reader', 'beside']) {
          await ask(name, () =>
            both.run(async () => {
              met.add(name);
              meet.emit('in');
              while (met.size < 2) await once(meet, 'in');
              order.push('readers');
            }),
          );
        }
        await write('last', 0);
        await write('urgent', 1);
        return started;
      }),
    );
    await Promise.all(jobs);
    expect(order).toEqual(['urgent', 'first', 'readers', 'readers', 'last']);
  });
});

// On whatever has no other place to read from, there is nothing to tell.
describe('ReenLock, on RedisStore with a replica', () => {
  const stage = useRedis(['--repl-diskless-sync-delay', '0']);
  let replica: RedisServer;
  let reader: Redis;
  beforeAll(async () => {
    replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(stage.server.port)] });
    reader = new Redis(replica.port);
  });
  afterAll(() => {
    reader.disconnect();
    return replica.stop();
  });

  it('reads from the master only', async () => {
    await until(async () => (await reader.info('replication')).includes('master_link_status:up'));
    // What it was sent itself, and not by its master.
    await reader.config('RESETSTAT');
    const holder = stage.deafProcess().line();
    await holder.hold();
    const waiter = await stage.deafProcess().line().wait();
    expect(await stage.order()).toEqual({ holds: [holder.holdId], waiters: [waiter.holdId] });
    await holder.release();
    await waiter.release();
    expect(await stage.order()).toEqual({ holds: [], waiters: [] });
    expect(await reader.info('commandstats')).not.toMatch(/cmdstat_(eval|evalsha|get|zrange)\b/);
    expect(await stage.client.info('commandstats')).toMatch(/cmdstat_evalsha/);
  });
});
