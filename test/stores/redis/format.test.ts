import { createLocks } from 'reenlock';
import type { InspectReply } from '../../../src/core/model/store.ts';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { readMessage } from '../../../src/stores/redis/replies.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';
import { runTimed, setScriptTime } from '../../support/redis/script-time.ts';
import { expectGoesOn, expectKnownMessages, expectLaterFormat } from '../../support/stores/stored-lock.ts';
import fixtures from '../fixtures/redis-format-1.json';

/** What a process left under the keys of a lock at a time. */
interface Stored {
  readonly nowMs: number;
  /** By the ends of their names: the fields of a hash, or the members and scores of a sorted set. */
  readonly keys: Readonly<Record<string, Readonly<Record<string, string>> | readonly string[]>>;
  readonly inspect: InspectReply;
}

const stored = Object.entries(fixtures as unknown as Record<string, Stored>);
const id = 'order:42';
const lock = `reenlock:{${id}}:lock`;

describe('What is stored in Redis as format 1', () => {
  const stage = useRedis();

  async function restore({ nowMs, keys }: Stored): Promise<void> {
    for (const [end, value] of Object.entries(keys)) {
      const name = `reenlock:{${id}}:${end}`;
      if (!Array.isArray(value)) await stage.client.hset(name, value as Record<string, string>);
      else for (let i = 0; i < value.length; i += 2) await stage.client.zadd(name, value[i + 1], value[i]);
    }
    await setScriptTime(stage.client, nowMs * 1_000);
    const client = stage.connect();
    stage.store = new RedisStore({ client });
    runTimed(client);
  }

  it.each(stored)(
    'A lock is read as %s: its holds are renewed and released, and its waiters get the key in their order',
    async (_, each) => {
      await restore(each);
      await expectGoesOn(stage.store, id, each.inspect);
    },
  );

  it('A lock of a later format is an error in every call that names it, and stays as it is', async () => {
    const later = { format: '2', ends: '1', fence: '2', else: 'something' };
    await stage.client.hset(lock, later);
    await expectLaterFormat(stage, id, (request) => stage.store.edges?.wait(request));
    expect(await stage.client.hgetall(lock)).toEqual(later);
    expect((await stage.client.keys('reenlock:*')).sort()).toEqual([lock]);
  });

  it('A listing names a lock of a later format, and returns the other locks', async () => {
    await stage.client.hset(lock, { format: '2' });
    await stage.deafProcess().line(undefined, { id: 'stock:7' }).hold();
    const page = await stage.store.list?.({ idPrefix: '', limit: 10 });
    expect([page?.locks.map((each) => each.id), page?.unreadable]).toEqual([['stock:7'], [id]]);
    const locks = createLocks({ store: stage.store });
    expect(await locks.list({ prefix: 'order:' })).toEqual({
      locks: [],
      unreadable: [{ key: id, category: undefined }],
      cursor: undefined,
    });
    await locks.close();
  });

  it('Messages are read as they were, and a kind that is not known yet is ignored', () => {
    expectKnownMessages(readMessage);
  });
});
