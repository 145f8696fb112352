import { readFile } from 'node:fs/promises';
import type { Redis } from 'ioredis';
import { createLocks, LockStoreError, type Locks, lock, runInTrace } from 'reenlock';
import { CasStore, RedisCas, RedisStore } from 'reenlock/redis';
import { buildLocks } from '../../../src/core/runtime/locks.ts';
import { longMs } from '../../../src/testing/contract/harness.ts';
import { key } from '../../../src/testing/contract/stage.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { type RedisStage, useRedis } from '../../support/redis/redis-stage.ts';
import { until } from '../../support/until.ts';

type Undo = () => Promise<unknown>;

interface Row {
  readonly name: string;
  /** Makes the server so. Returns what undoes it. */
  readonly spoil: (stage: RedisStage, client: Redis) => Promise<Undo>;
  /** What the server answers; none where it answers nothing. */
  readonly code?: string;
  /** The only store that gets this answer. */
  readonly only?: 'CasStore';
  /** The store whose renewals and releases of what was granted before are taken all the same. */
  readonly goesOn?: 'RedisStore';
}

const config = async (stage: RedisStage, name: string, value: string, then: string): Promise<Undo> => {
  await stage.client.config('SET', name, value);
  return () => stage.client.config('SET', name, then);
};

const rows: readonly Row[] = [
  { name: 'WRONGTYPE, at every key that is a lock', code: 'WRONGTYPE', spoil: takeKeys },
  {
    name: 'READONLY',
    code: 'READONLY',
    async spoil({ client }) {
      await client.call('REPLICAOF', '127.0.0.1', '1');
      return () => client.call('REPLICAOF', 'NO', 'ONE');
    },
  },
  { name: 'LOADING', code: 'LOADING', spoil: load },
  { name: 'OOM', code: 'OOM', goesOn: 'RedisStore', spoil: (stage) => config(stage, 'maxmemory', '1', '0') },
  { name: 'MISCONF', code: 'MISCONF', spoil: failToSave },
  {
    name: 'NOREPLICAS',
    code: 'NOREPLICAS',
    spoil: (stage) => config(stage, 'min-replicas-to-write', '1', '0'),
  },
  { name: 'NOAUTH', code: 'NOAUTH', only: 'CasStore', spoil: askForPassword },
  {
    name: 'NOPERM',
    code: 'NOPERM',
    async spoil({ client }) {
      const rights = ['eval', 'evalsha', 'get', 'set'];
      await client.call('ACL', 'SETUSER', 'default', ...rights.map((right) => `-${right}`));
      return () => client.call('ACL', 'SETUSER', 'default', ...rights.map((right) => `+${right}`));
    },
  },
  { name: 'BUSY', code: 'BUSY', spoil: runForEver },
  { name: 'maxclients', spoil: fill },
];

/** `RedisStore` and `CasStore` on a server that refuses to do what it should. */
describe.each(['RedisStore', 'CasStore'])('%s, on a server that responds', (kind) => {
  const stage = useRedis([
    ...['--busy-reply-threshold', '50', '--enable-debug-command', 'yes', '--rdb-key-save-delay', '0'],
    ...['--loading-process-events-interval-bytes', '1024'],
  ]);
  let client: Redis;
  let clock: ManualClock;
  let locks: Locks;
  let close: () => void;
  beforeEach(async () => {
    client = stage.connect();
    await client.ping();
    const adapter = new RedisCas({ client });
    close = () => adapter.close();
    clock = new ManualClock();
    stage.store = kind === 'RedisStore' ? new RedisStore({ client }) : new CasStore({ adapter }, clock);
    locks = buildLocks({ store: stage.store }, clock);
  });
  afterEach(async () => {
    // A release that failed is tried again until its lease is over.
    let isClosed = false;
    const closing = locks.close({ drainMs: 0 }).finally(() => {
      isClosed = true;
    });
    while (!isClosed) await clock.advance(1_000);
    await closing;
    close();
  });

  const ofStore = rows.filter(({ only = kind }) => only === kind);

  it.each(ofStore)(
    '[refusing-01] $name: each call fails with its true cause, and none waits',
    async ({ spoil, code, goesOn }) => {
      const holder = stage.deafProcess().line(undefined, { id: 'order:41' });
      const { fence } = await holder.hold();
      // Where the server answers, the connection for messages is there; else it is one more that can't be had.
      if (code !== undefined) await runInTrace(() => lock.run('order:40', () => undefined), { locks });
      const undo = await spoil(stage, client);
      try {
        const acquired = runInTrace(() => lock.acquire(key, { waitMs: 10_000 }), { locks }).catch((error) => error);
        // An answer is passed on while the clock stands; where there is none, that is told after `storeTimeoutMs`.
        if (code === undefined) await clock.advance(locks.settings.storeTimeoutMs + 100);
        const error: LockStoreError = await acquired;
        expect(error).toBeInstanceOf(LockStoreError);
        expect(error).toMatchObject({ code: 'ERR_LOCK_STORE', status: 503, retryable: true });
        expect(error.outcome).toBe('not-applied');
        if (code !== undefined) expect(error.cause).toMatchObject({ message: expect.stringMatching(`^${code} `) });

        // What nobody answers, the deadline of the caller ends.
        if (code === undefined) return;
        for (const result of await Promise.allSettled([holder.renew(fence), holder.release(longMs)])) {
          if (goesOn === kind) expect(result).toMatchObject({ status: 'fulfilled' });
          else expect(result).toMatchObject({ reason: { code: 'ERR_LOCK_STORE', outcome: 'not-applied' } });
        }
      } finally {
        await undo();
      }
      expect(await runInTrace(() => lock.run('order:40', () => 'goes on'), { locks })).toBe('goes on');
    },
  );
});

describe('A server that refuses', () => {
  const stage = useRedis();

  it('A call on a connection that is not logged in any more fails with NOAUTH, and was not applied', async () => {
    const client = stage.connect({ lazyConnect: true, retryStrategy: null });
    await client.connect();
    const undo = await askForPassword(stage, client);
    stage.store = new RedisStore({ client });
    const message = expect.stringContaining('The lock store replied NOAUTH to acquire');
    await expect(stage.deafProcess().line().ask()).rejects.toMatchObject({ outcome: 'not-applied', message });
    await undo();
  });

  it('A refused acquire costs one call: nothing has to be undone', async () => {
    const undo = await config(stage, 'min-replicas-to-write', '1', '0');
    const locks = createLocks({ store: stage.store });
    const refused = async (): Promise<void> => {
      const acquired = runInTrace(() => lock.acquire(key), { locks });
      await expect(acquired).rejects.toMatchObject({ cause: { message: expect.stringMatching('^NOREPLICAS ') } });
    };
    await refused();
    await stage.client.config('RESETSTAT');
    await Promise.all(Array.from({ length: 50 }, refused));
    expect([await stage.calls(), await stage.calls('eval')]).toEqual([50, 0]);
    await locks.close();
    expect(await stage.calls()).toBe(50);
    await undo();
  });
});

describe('A call whose key has the wrong type', () => {
  const stage = useRedis();

  it('WRONGTYPE fails with its true cause', async () => {
    const { edges } = new RedisStore({ client: stage.client });
    await stage.client.set('reenlock:{owner}:edges', 'no lock');
    const { request } = stage.deafProcess().line();
    for (const call of [edges.of('owner'), edges.set('owner', { request, traceId: 'owner', key }, longMs)]) {
      const refusal = { code: 'ERR_LOCK_STORE', cause: { message: expect.stringMatching('^WRONGTYPE ') } };
      await expect(call).rejects.toMatchObject(refusal);
    }
  });
});

/** Puts what is no lock at the keys of both locks. */
async function takeKeys({ client }: RedisStage): Promise<Undo> {
  for (const id of [key, 'order:41']) {
    for (const name of [`reenlock:{${id}}:lock`, `reenlock:${id}`]) {
      await client.del(name);
      await client.sadd(name, 'member');
    }
  }
  return () => client.flushall();
}

/** Reads its data anew, and so slowly that it is not done before it is told; clients that are connected already are. */
async function load(stage: RedisStage): Promise<Undo> {
  const { client } = stage;
  await client.eval("for i = 1, 3000 do redis.call('SET', 'filler:' .. i, string.rep('x', 100)) end", 0);
  await client.config('SET', 'key-load-delay', '10000');
  const other = stage.connect();
  const loaded = other.call('DEBUG', 'RELOAD');
  const isLoading = (error: Error): boolean => error.message.startsWith('LOADING');
  await until(() => client.exists('any').then(() => false, isLoading));
  return async () => {
    await client.config('SET', 'key-load-delay', '0');
    await loaded;
  };
}

/** A snapshot that can't be written: the process that writes it is killed. */
async function failToSave({ client, server }: RedisStage): Promise<Undo> {
  await client.call('CONFIG', 'SET', 'rdb-key-save-delay', '10000000', 'save', '3600 100000');
  await client.call('BGSAVE');
  let child = 0;
  await until(async () => {
    child = Number.parseInt(await readFile(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8'), 10);
    return child > 0;
  });
  process.kill(child, 'SIGKILL');
  await until(async () => /rdb_last_bgsave_status:err/.test(await client.info('persistence')));
  return () => client.call('CONFIG', 'SET', 'rdb-key-save-delay', '0', 'save', '');
}

/** A password is set, and the connection is as if it had just been made without one. */
async function askForPassword({ client }: RedisStage, own: Redis): Promise<Undo> {
  await client.config('SET', 'requirepass', 'secret');
  await own.call('RESET');
  return () => client.config('SET', 'requirepass', '');
}

/** Somebody's script that does not end. */
async function runForEver(stage: RedisStage): Promise<Undo> {
  const { client } = stage;
  const other = stage.connect();
  const endless = other.eval('while true do end', 0).catch(() => undefined);
  const isBusy = (error: Error): boolean => error.message.startsWith('BUSY');
  await until(() => client.exists('any').then(() => false, isBusy));
  return async () => {
    await client.script('KILL');
    await endless;
  };
}

/** The client loses its connection, and there is no place for another one. */
async function fill({ client }: RedisStage, own: Redis): Promise<Undo> {
  const id = await own.client('ID');
  await client.config('SET', 'maxclients', '1');
  await client.config('RESETSTAT');
  await client.client('KILL', 'ID', id);
  await until(async () => /^rejected_connections:[1-9]/m.test(await client.info('stats')));
  return async () => {
    await client.config('SET', 'maxclients', '1000');
    await until(() => own.status === 'ready');
  };
}
