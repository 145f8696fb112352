import { setImmediate as turn } from 'node:timers/promises';
import { createLocks, lock, runInTrace } from 'reenlock';
import type { StoreMessage } from '../../../src/core/model/store.ts';
import { driverOf } from '../../../src/stores/redis/drivers/driver-of.ts';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { checkRights } from '../../../src/stores/redis/scripts.generated.ts';
import { type AppClient, clientLibraries } from '../../support/redis/clients.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';
import { until } from '../../support/until.ts';
import { recordWarnings } from '../../support/warnings.ts';

const all = ['reset', 'on', '>secret', '~reenlock:*', '&reenlock:*', '+@all'];

describe.each(clientLibraries)('The rights of the user of a RedisStore, with $name', (library) => {
  const stage = useRedis();
  const warnings = recordWarnings();
  const apps: AppClient[] = [];
  afterEach(async () => {
    for (const app of apps.splice(0)) await app.close();
    await stage.client.call('ACL', 'DELUSER', 'locks');
  });

  /** The store of a user with all rights, but for what `less` takes away. */
  async function storeOf(...less: readonly string[]): Promise<RedisStore> {
    await stage.client.call('ACL', 'SETUSER', 'locks', ...all, ...less);
    const app = library.connect({ port: stage.server.port, username: 'locks', password: 'secret' });
    apps.push(app);
    await app.ready();
    return new RedisStore({ client: app.client });
  }

  /** What a process is told that subscribes, up to when the server has answered its questions. */
  async function told(store: RedisStore): Promise<StoreMessage[]> {
    const messages: StoreMessage[] = [];
    await stage.client.config('RESETSTAT');
    const end = await store.subscribe('process', (message) => messages.push(message));
    await until(async () => (await stage.calls('eval')) === 1);
    // Answered after the questions, on the same connection.
    await store.inspect('any');
    await turn();
    await end();
    return messages.filter(({ kind }) => kind === 'warning');
  }

  it.each([
    { less: ['-pubsub'], lacking: '`PUBSUB NUMSUB`', add: '+pubsub|numsub' },
    { less: ['-publish'], lacking: '`PUBLISH`', add: '+publish' },
    { less: ['resetchannels', '&other:*', '&reenlock:grants:process'], lacking: '`PUBLISH`', add: '+publish' },
    { less: ['-zadd', '-pexpire'], lacking: '`PEXPIRE`, `ZADD`', add: '+pexpire +zadd' },
  ])('A user with $less is reported with the commands that it may not call, and the line helps', async (row) => {
    const store = await storeOf(...row.less);
    const [warning, ...others] = (await told(store)) as { code: string; message: string }[];
    expect(others).toEqual([]);
    expect(warning?.code).toBe('LOCK_REDIS_RIGHTS');
    for (const command of row.lacking.split(', ')) expect(warning?.message).toContain(command);
    const [, line = ''] = /`ACL SETUSER <user> (.*)`$/.exec(warning?.message ?? '') ?? [];
    expect(line.split(' ').sort()).toEqual(['~reenlock:*', '&reenlock:*', ...row.add.split(' ')].sort());
    await stage.client.call('ACL', 'SETUSER', 'locks', ...line.split(' '));
    expect(await told(store)).toEqual([]);
  });

  it('The first lock of a process is enough for the warning, long before anybody waits', async () => {
    const locks = createLocks({ store: await storeOf('-publish') });
    await runInTrace(() => lock.run('order:42', () => {}), { locks });
    await until(() => warnings().length > 0);
    expect(warnings()).toMatchObject([{ code: 'LOCK_REDIS_RIGHTS', message: expect.stringContaining('+publish') }]);
    await locks.close();
  });

  it('A user with all rights is not reported, and its questions leave no key and no entry in the log', async () => {
    await stage.client.call('ACL', 'LOG', 'RESET');
    expect(await told(await storeOf())).toEqual([]);
    expect(await stage.client.call('ACL', 'LOG')).toEqual([]);
    expect(await stage.client.keys('*')).toEqual([]);
  });

  it('A server that reports no rights, as before Redis 7.0, is asked for the two that nobody would miss', async () => {
    await storeOf('-publish', '-pubsub', '-zadd');
    const source = checkRights.source.replaceAll('redis.acl_check_cmd', 'redis.none');
    const asked = ['PUBLISH', 'PUBSUB NUMSUB', 'ZADD', 'TIME'];
    const check = (): Promise<unknown> =>
      driverOf(apps[0]!.client).send(['eval', source, 1, 'reenlock:check', 'reenlock:grants:check', ...asked]);
    expect(await check()).toEqual(['PUBLISH', 'PUBSUB NUMSUB']);
    await stage.client.call('ACL', 'SETUSER', 'locks', '+@all');
    expect(await check()).toEqual([]);
  });

  it.each([
    { less: ['-evalsha'], lacks: '`+evalsha`' },
    { less: ['resetkeys', '~other:*'], lacks: 'the right to its keys (`~<prefix>*`)' },
  ])('A call of a user with $less fails with an error that names the right', async ({ less, lacks }) => {
    const store = await storeOf(...less);
    const message = `The lock store replied NOPERM to inspect: its user lacks ${lacks}. Add those that the guide of the store lists`;
    await expect(store.inspect('order:42')).rejects.toMatchObject({ message, outcome: 'not-applied' });
  });

  it('A subscription of a user without the right to its channels fails with an error that names them', async () => {
    const store = await storeOf('resetchannels', '&other:*');
    const subscribed = store.subscribe('process', () => {});
    await expect(subscribed).rejects.toMatchObject({
      message: expect.stringContaining('its user lacks the right to its channels (`&<prefix>*`)'),
    });
  });
});
