import { inspect } from 'node:util';
import { Redis } from 'ioredis';
import { LockStoreError } from '../../../src/core/model/errors/failures.ts';
import { CasStore } from '../../../src/stores/cas/cas-store.ts';
import { RedisCas } from '../../../src/stores/cas/redis-cas.ts';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { longMs } from '../../../src/testing/contract/harness.ts';
import { key, StoreStage } from '../../../src/testing/contract/stage.ts';
import { disconnectTimeout } from '../../support/redis/client.ts';
import { FakeRedis } from '../../support/redis/fake-redis.ts';
import { ioredisVersions } from '../../support/redis/ioredis.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';
import { until } from '../../support/until.ts';

/** Where a command stands within a script, as a Redis from 7.0 on says it. */
const place = ` script: ${'7f052c98'.repeat(5)}, on @user_script:12.`;

describe('A server’s reply to a script', () => {
  const fake = new FakeRedis();
  const stage = new StoreStage();
  let client: Redis;
  beforeEach(async () => {
    await fake.start();
    client = new Redis(fake.port, {
      protocol: 2,
      enableReadyCheck: false,
      maxRetriesPerRequest: 0,
      retryStrategy: () => 10,
      disconnectTimeout,
    });
    client.on('error', () => {});
    // Before there is a connection, nobody can tell how often a call was sent.
    await client.ping();
    stage.store = new RedisStore({ client });
  });
  afterEach(async () => {
    client.disconnect();
    await fake.stop();
  });

  async function errors(): Promise<unknown[]> {
    const line = stage.deafProcess().line();
    const calls = [line.ask(), line.renew(1), line.release(), stage.inspect(), stage.store.forceRelease(key, 1)];
    return Promise.all(
      calls.map((call) =>
        call.then(
          (reply) => reply,
          (error: unknown) => error,
        ),
      ),
    );
  }

  it.each([
    ['LOADING Redis is loading the dataset in memory', 'LOADING'],
    ["READONLY You can't write against a read only replica.", 'READONLY'],
    ['MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to no', 'MASTERDOWN'],
    ['MISCONF Redis is configured to save RDB snapshots', 'MISCONF'],
    ['NOAUTH Authentication required.', 'NOAUTH'],
    ['BUSY Redis is busy running a script.', 'BUSY'],
    ['CLUSTERDOWN The cluster is down', 'CLUSTERDOWN'],
    ["OOM command not allowed when used memory > 'maxmemory'.", 'OOM'],
    // A server of a cluster, to a client that knows of none.
    ['MOVED 3999 127.0.0.1:6381', 'MOVED'],
    ['ASK 3999 127.0.0.1:6381', 'ASK'],
    ['TRYAGAIN Multiple keys request during rehashing of slot', 'TRYAGAIN'],
    ["CROSSSLOT Keys in request don't hash to the same slot", 'CROSSSLOT'],
    ['NOREPLICAS Not enough good replicas to write.', 'NOREPLICAS'],
    // Valkey 8, to a client that said that it follows such replies.
    ['REDIRECT 127.0.0.1:6381', 'REDIRECT'],
    ["NOPERM this user has no permissions to run the 'evalsha' command", 'NOPERM'],
    // From within a script, the reply to its first write: Redis 7, and 6.2.
    [`NOREPLICAS Not enough good replicas to write.${place}`, 'NOREPLICAS'],
    [`OOM command not allowed when used memory > 'maxmemory'.${place}`, 'OOM'],
    [`READONLY You can't write against a read only script.${place}`, 'READONLY'],
    ['ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -OOM command not allowed', 'ERR'],
    ['ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -MISCONF Errors writing', 'ERR'],
    // Of a server that renames or lacks it.
    ["ERR unknown command 'evalsha', with args beginning with: '1'", 'ERR'],
    ['ERR unknown command `evalsha`, with args beginning with: `1`', 'ERR'],
  ])('-%s means that nothing was applied', async (answer, code) => {
    fake.answer = `-${answer}`;
    for (const error of await errors()) {
      expect(error).toBeInstanceOf(LockStoreError);
      expect(error).toMatchObject({ outcome: 'not-applied', message: expect.stringContaining(`replied ${code} to`) });
      expect(error).toMatchObject({ cause: { message: answer } });
    }
  });

  it.each([
    ["READONLY You can't write against a read only replica.", 'connect the client to the primary'],
    ['MISCONF Redis is configured to save RDB snapshots', 'its log'],
    ["OOM command not allowed when used memory > 'maxmemory'.", '`maxmemory`'],
    ['NOREPLICAS Not enough good replicas to write.', '`min-replicas-to-write`'],
    ['NOAUTH Authentication required.', 'password'],
    ['BUSY Redis is busy running a script.', '`SCRIPT KILL`'],
    ['CLUSTERDOWN The cluster is down', '`redis-cli --cluster check`'],
    ['LOADING Redis is loading the dataset in memory', 'try again when it has'],
    [
      'MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to no',
      'connect the client to the primary',
    ],
    // This client knows of no cluster.
    ['MOVED 3999 127.0.0.1:6381', '`createCluster` of node-redis'],
    ['WRONGTYPE Operation against a key holding the wrong kind of value', '`prefix`'],
  ])('The error for -%s says what to do', async (answer, advice) => {
    fake.answer = `-${answer}`;
    for (const error of await errors()) expect(error).toMatchObject({ message: expect.stringContaining(advice) });
  });

  it.each([
    'ERR Error running script (call to f_1): @user_script:1: Script killed by user',
    'UNKILLABLE Sorry the script already executed write commands',
    'EXECABORT Transaction discarded',
    // The script may have written before it called what it may not.
    `NOPERM ACL failure in script: User locks has no permissions to run the 'publish' command${place}`,
    `ERR The user executing the script can't run this command or subcommand${place}`,
    `ERR Unknown Redis command called from script${place}`,
    'loading, in small letters',
    'LOADINGS',
  ])('-%s leaves the outcome unknown', async (answer) => {
    fake.answer = `-${answer}`;
    for (const error of await errors()) expect(error).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
  });

  it('The client’s own error is no reply, whatever its first word', async () => {
    const own = new Error('READONLY is what it says');
    stage.store = new RedisStore({
      client: Object.create(client, { sendCommand: { value: () => Promise.reject(own) } }),
    });
    for (const error of await errors()) {
      expect(error).toMatchObject({ outcome: 'unknown', message: expect.stringContaining('did not reply to') });
    }
  });

  it('A connection that ends before the reply leaves the outcome unknown, for each call of a turn', async () => {
    fake.answer = 'hang up';
    for (const error of await errors()) {
      expect(error).toBeInstanceOf(LockStoreError);
      expect(error).toMatchObject({ outcome: 'unknown', message: expect.stringContaining('did not reply to') });
    }
  });

  it.each([
    ['was made on a connection', true],
    ['waited for the first one', false],
  ])('A refusal of a call that %s, and was sent again, leaves the outcome unknown', async (_, isConnected) => {
    const again = new Redis(fake.port, { protocol: 2, enableReadyCheck: false, retryStrategy: () => 10 });
    again.on('error', () => {});
    stage.store = new RedisStore({ client: again });
    if (isConnected) await again.ping();
    fake.commands.length = 0;
    fake.answer = 'hang up';
    // The first copy may have been applied.
    const replies = errors();
    await until(() => fake.commands.some((name) => name.startsWith('eval')));
    fake.answer = "-READONLY You can't write against a read only replica.";
    for (const error of await replies) {
      expect(error).toMatchObject({ outcome: 'unknown', message: expect.stringContaining('replied READONLY to') });
    }
    again.disconnect();
  });

  it.each(['*0', '*1\r\n*0'])('A reply of another kind (%j) settles every call', async (answer) => {
    fake.answer = answer;
    expect(await errors()).toHaveLength(5);
  });

  it.each(['$-1', '+OK', '+QUEUED', ':-5'])(
    'A reply that no script gives (%j) leaves the outcome unknown',
    async (answer) => {
      fake.answer = answer;
      for (const error of await errors()) expect(error).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
    },
  );

  it('After NOSCRIPT the source is sent, once', async () => {
    fake.commands.length = 0;
    fake.answer = '-NOSCRIPT No matching script. Please use EVAL.';
    const line = stage.deafProcess().line();
    await expect(line.ask()).rejects.toMatchObject({ code: 'ERR_LOCK_STORE' });
    expect(fake.commands.filter((name) => name.startsWith('eval'))).toEqual(['evalsha', 'eval']);
  });
});

describe('Errors of a real server', () => {
  const stage = useRedis();

  it('After a MULTI of the application on its client, nothing is granted, renewed or released', async () => {
    const client = stage.connect();
    stage.store = new RedisStore({ client });
    const process = stage.deafProcess();
    const holder = process.line(undefined, { id: 'held' });
    const { fence } = await holder.hold();
    await client.multi({ pipeline: false });
    const line = process.line();
    const unknown = { code: 'ERR_LOCK_STORE', outcome: 'unknown' };
    await expect(line.ask()).rejects.toMatchObject(unknown);
    await expect(holder.renew(fence)).rejects.toMatchObject(unknown);
    await expect(holder.release()).rejects.toMatchObject(unknown);
    await expect(stage.inspect()).rejects.toMatchObject(unknown);
    await client.discard();
    expect(await stage.order()).toEqual({ holds: [], waiters: [] });
    // The first acquire may have arrived: a release has to outlast it.
    expect(await line.ask()).toMatchObject({ status: 'granted', mayArriveLater: true });
    expect(await holder.release()).toMatchObject({ status: 'released' });
  });

  it.each(['RedisStore', 'CasStore'])(
    'No log prints the owner, the process or the channel of a call of %s that the server refused',
    async (kind) => {
      const adapter = new RedisCas({ client: stage.client });
      if (kind === 'CasStore') stage.store = new CasStore({ adapter });
      const process = stage.deafProcess();
      const line = process.line('owner-secret');
      await stage.client.call('REPLICAOF', '127.0.0.1', '1');
      const results = await Promise.allSettled([line.ask(), line.renew(1), line.release(longMs)]);
      await stage.client.call('REPLICAOF', 'NO', 'ONE');
      const reasons = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
      expect(reasons).not.toEqual([]);
      for (const reason of reasons) {
        expect(reason).toMatchObject({ cause: { message: expect.stringMatching(/^READONLY /) } });
        const printed = inspect(reason, { depth: 9 });
        for (const secret of ['owner-secret', process.name, 'grants:']) expect(printed).not.toContain(secret);
      }
      adapter.close();
    },
  );

  it('No log prints the channel of a subscription that the server ends and refuses', async () => {
    const client = await stage.connectAs('guest', 'resetchannels', '&reenlock:*');
    const faults: unknown[] = [];
    const end = await new RedisStore({ client }).subscribe('process-secret', (message) => {
      if (message.kind === 'fault') faults.push(message.error);
    });
    await stage.client.call('ACL', 'SETUSER', 'guest', 'resetchannels');
    await until(() => faults.length > 0);
    expect(inspect(faults, { depth: 9 })).toContain('NOPERM');
    expect(inspect(faults, { depth: 9 })).not.toContain('process-secret');
    await end();
  });

  it.each(ioredisVersions)(
    'A login that the server refuses is reported, by %s, without the password',
    async (_, { Redis: Client }) => {
      await stage.client.call('ACL', 'SETUSER', 'locks', 'reset', 'on', '>rotated', '~*', '&*', '+@all');
      const { port } = stage.server;
      const client = new Client({
        port,
        username: 'locks',
        password: 'hunter2',
        retryStrategy: () => 10,
        disconnectTimeout,
      });
      client.on('error', () => {});
      const store = new RedisStore({ client });
      const cas = new RedisCas({ client });
      const told: unknown[] = [];
      const subscribed = store.subscribe('process', (message) => told.push(message));
      const calls = [
        ...[store.inspect('id'), store.list({ idPrefix: '', limit: 1, cursor: undefined }), subscribed],
        ...[
          cas.read('key'),
          cas.create('key', 'new', 1),
          cas.replace('key', 'old', 'new', 1),
          cas.remove('key', 'old'),
        ],
      ];
      const errors = (await Promise.allSettled(calls)).map((result) => (result as PromiseRejectedResult).reason);
      client.disconnect();
      cas.close();
      const printed = inspect([...errors, ...told], { depth: 9 });
      expect(printed.match(/WRONGPASS/g)?.length).toBeGreaterThan(calls.length);
      expect(printed).not.toContain('hunter2');
    },
  );

  it('A user without any channel never gets `not-applied` for an applied call', async () => {
    const mute = await stage.connectAs('mute', 'resetchannels');
    const process = await stage.process();
    const holder = stage.deafProcess().line();
    await holder.hold();
    const waiter = await process.line().wait();
    const store = new RedisStore({ client: mute });
    const outcome = await store
      .release(holder.request, { tombstoneMs: longMs })
      .catch((error: LockStoreError) => error);
    // The hold is gone: the grant was written before it could not be published.
    expect((await stage.order()).holds).toEqual([waiter.holdId]);
    expect(outcome).not.toMatchObject({ outcome: 'not-applied' });
  });

  it('A paused server settles nothing, and what was sent is done when it goes on', async () => {
    const line = stage.deafProcess().line();
    await stage.client.ping();
    stage.server.pause();
    let isSettled = false;
    const reply = line.ask().finally(() => {
      isSettled = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(isSettled).toBe(false);
    stage.server.resume();
    expect((await reply).status).toBe('granted');
  });
});
