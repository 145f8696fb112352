import { createLocks } from 'reenlock';
import type { InspectReply } from '../../../src/core/model/store.ts';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { readMessage } from '../../../src/stores/redis/replies.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';
import { runTimed, setScriptTime } from '../../support/redis/script-time.ts';
import { expectLaterFormat, goOnWith } from '../../support/stores/stored-lock.ts';
import fixtures from '../fixtures/redis-format-1.json';

watchLeaks();

/** What a process left under the two keys of a lock at a time. */
interface Stored {
  readonly nowMs: number;
  readonly lock: string;
  readonly queue: readonly string[];
  readonly inspect: InspectReply;
}

const stored = Object.entries(fixtures as unknown as Record<string, Stored>);
const id = 'order:42';
const keys = { lock: `reenlock:{${id}}:lock`, queue: `reenlock:{${id}}:queue` };

describe('What is stored in Redis as format 1', () => {
  const stage = useRedis();

  const ends: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  async function restore({ nowMs, lock, queue }: Stored): Promise<void> {
    await stage.client.set(keys.lock, lock);
    for (let i = 0; i < queue.length; i += 2) await stage.client.zadd(keys.queue, queue[i + 1]!, queue[i]!);
    await setScriptTime(stage.client, nowMs * 1_000);
    const client = stage.connect();
    stage.store = new RedisStore({ client });
    ends.push(() => client.disconnect());
    runTimed(client);
  }

  it.each(stored)('`inspect` reads %s', async (_, each) => {
    await restore(each);
    expect(await stage.store.inspect(id)).toEqual(each.inspect);
  });

  it.each(stored)(
    'All holds of %s are renewed and released, and its waiters get the key in their order',
    async (_, each) => {
      await restore(each);
      const order = [...each.inspect.holds, ...each.inspect.waiters].map(({ holdId }) => holdId);
      expect(await goOnWith(stage.store, id, each.inspect)).toEqual({ order, isFenceHigher: true });
    },
  );

  it('A record of a later format is an error that says so in every call, and stays as it is', async () => {
    const later = 'v2 something else';
    await stage.client.set(keys.lock, later);
    await expectLaterFormat(stage, id, (request) => stage.store.edges?.wait(request));
    expect(await stage.client.get(keys.lock)).toBe(later);
    expect(await stage.client.exists(keys.queue)).toBe(0);
  });

  it.each(['v2 something else', 'p9999 something else', 'p-4', 'r1700000000000000--'])(
    'A listing names a record of a later format (%j), and returns the other locks',
    async (later) => {
      await stage.client.set(keys.lock, later);
      await stage.deafProcess().line(undefined, { id: 'stock:7' }).hold();
      const page = await stage.store.list?.({ idPrefix: '', limit: 10 });
      expect([page?.locks.map((lock) => lock.id), page?.unreadable]).toEqual([['stock:7'], [id]]);
      const locks = createLocks({ store: stage.store });
      expect(await locks.list({ prefix: 'order:' })).toEqual({
        locks: [],
        unreadable: [{ key: id, category: undefined }],
        cursor: undefined,
      });
      await locks.close();
    },
  );

  it('A key with permits begins with a `p`, which versions without permits refuse, until nobody holds it or waits', async () => {
    const record = async () => ((await stage.client.get(keys.lock)) as string).slice(0, 6);
    const process = await stage.process();
    const line = () => process.line(undefined, { id, mode: 'permit', permits: 12 });
    const holders = Array.from({ length: 12 }, line);
    for (const holder of holders) {
      const { fence } = await holder.hold();
      await holder.renew(fence);
      expect(await record()).toMatch(/^p0012\d$/);
    }
    const waiter = await line().wait();
    for (const holder of holders) {
      await holder.release();
      expect(await record()).toMatch(/^p0012\d$/);
    }
    await waiter.release();
    expect(await record()).toMatch(/^\d{6}$/);
  });

  it('If the record of a key with permits is lost, waiters keep their places, and the holds in the queue their permits', async () => {
    const process = await stage.process();
    const line = () => process.line(undefined, { id, mode: 'permit', permits: 2 });
    // The first one’s hold is in the record.
    const holders = [line(), line()] as const;
    for (const holder of holders) await holder.hold();
    const waiters = [await line().wait(), await line().wait(), await line().wait()];
    await stage.client.del(keys.lock);
    const again = process.line(holders[1].request.owner, { id, mode: 'permit', permits: 2 });
    expect((await again.hold()).fence).toBeGreaterThan(0);
    await again.release();
    expect(await line().status({ queue: false })).toBe('granted');
    expect(await line().status({ queue: false })).toBe('refused');
    expect(await waiters[0]?.status()).toBe('queued');
    const { holds, waiters: left, permits } = await stage.inspect(id);
    expect([holds.length, left.length, permits]).toEqual([2, 3, 2]);
    await holders[1].release();
    expect((await stage.inspect(id)).holds.map(({ holdId }) => holdId)).toContain(waiters[0]?.holdId);
  });

  it('Messages are read as they were, and a kind that is not known yet is ignored', () => {
    const grant = { holdId: 'hold-1', fence: 1700000000000000, endMs: 1700000003000, isClaim: true };
    expect(readMessage('granted hold-1 1700000000000000 1700000003000')).toEqual({ kind: 'granted', grant });
    expect(readMessage('lost hold-1')).toEqual({ kind: 'lost', holdId: 'hold-1' });
    expect(readMessage('freed order:42')).toEqual({ kind: 'freed', id: 'order:42' });
    expect(readMessage('moved hold-1 5')).toBeUndefined();
  });
});
