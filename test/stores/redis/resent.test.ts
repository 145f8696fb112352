import { createLocks, lock, runInTrace } from '../../../src/core/index.ts';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { acquire } from '../../../src/stores/redis/scripts.generated.ts';
import { TcpProxy } from '../../support/processes/tcp-proxy.ts';
import { clientLibraries } from '../../support/redis/clients.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';

describe.each(clientLibraries)('A try that is refused, with $name', (library) => {
  const stage = useRedis();
  // node-redis never sends a command again: the try fails, and its release is remembered all the same.
  const resends = !library.name.startsWith('node-redis');

  /** One try on a key that another holds, through a proxy that may lose its reply; answers the command as it was sent. */
  async function refused(losesReply: boolean): Promise<readonly string[]> {
    const proxy = await TcpProxy.start(stage.server.port);
    const app = library.connect({ port: proxy.port });
    // What is sent before there is a connection can't be told from what was sent on another one.
    await app.ready();
    const locks = createLocks({ store: new RedisStore({ client: app.client }) });
    let sent: readonly string[] = [];
    const isTry = (words: readonly string[]): boolean => {
      if (words[1] !== acquire.sha1) return false;
      sent = words;
      return losesReply;
    };
    void proxy.loseReply(isTry);
    try {
      const tried = runInTrace(() => lock.tryAcquire('key'), { locks, traceId: 'another' });
      if (losesReply && !resends) await expect(tried).rejects.toMatchObject({ outcome: 'unknown' });
      else expect(await tried).toBeNull();
      expect(proxy.lost).toBe(losesReply ? 1 : 0);
    } finally {
      // What was sent in the background is answered then.
      await locks.close();
      app.close();
      await proxy.stop();
    }
    return sent;
  }

  it('A refused try whose reply was lost leaves nothing, also if a copy of it arrives when the key is free', async () => {
    const locks = createLocks({ store: new RedisStore({ client: stage.client }) });
    const [command = '', ...args] = await runInTrace(() => lock.run('key', () => refused(true)), { locks });
    expect(await stage.client.call(command, ...args)).toContain('cancelled');
    expect((await stage.store.inspect('key')).holds).toEqual([]);
    await locks.close();
  });

  it('A refused try costs no further call if it was sent once', async () => {
    const locks = createLocks({ store: new RedisStore({ client: stage.client }) });
    await runInTrace(
      () =>
        lock.run('key', async () => {
          const before = await stage.calls();
          await refused(false);
          expect(await stage.calls()).toBe(before + 1);
        }),
      { locks },
    );
    await locks.close();
  });
});
