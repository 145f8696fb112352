import { RedisStore } from '../../../../src/core/stores/redis/redis-store.ts';
import { longMs } from '../../../../src/testing/contract/harness.ts';
import { key } from '../../../../src/testing/contract/stage.ts';
import { watchLeaks } from '../../../support/processes/leaks.ts';
import type { OpenClient } from '../../../support/redis/client.ts';
import { type ClusterLibrary, clusterLibraries } from '../../../support/redis/cluster-clients.ts';
import { type ClusterStage, useCluster } from '../../../support/redis/cluster-stage.ts';
import { warmUp } from '../../../support/redis/warm-up.ts';

watchLeaks();

describe('Thin locks in a cluster', () => {
  const stage = useCluster();
  describe.each(clusterLibraries)('with $name', (library) => testWith(stage, library));
});

function testWith(stage: ClusterStage, library: ClusterLibrary): void {
  const keyPrefix = 'shop:';
  const record = `${keyPrefix}reenlock:{${key}}:lock`;
  let app: OpenClient;
  beforeEach(async () => {
    app = await library.connect({ nodes: stage.cluster.nodes, keyPrefix });
    stage.store = new RedisStore({ client: app.client });
    await warmUp(stage.store);
  });
  afterEach(async () => {
    await stage.end();
    await app.close();
  });
  const isNodeRedis = library.name.startsWith('node-redis');

  it(
    isNodeRedis ? 'The option has no effect with its cluster: locks have a record' : 'A free key is thin',
    async () => {
      const line = stage.deafProcess().line();
      await line.hold();
      expect(await stage.client.type(record)).toBe(isNodeRedis ? 'string' : 'stream');
      expect((await line.release(longMs)).status).toBe('released');
      expect(await stage.order()).toEqual({ holds: [], waiters: [] });
    },
  );

  it('A key that was in demand has a record until that is gone', async () => {
    const process = stage.deafProcess();
    const [first, second, third] = [process.line(), process.line(), process.line()];
    await first.hold();
    await second.wait();
    await first.release(longMs);
    await second.hold();
    await second.release(longMs);
    const { fence } = await third.hold();
    expect(await stage.client.type(record)).toBe('string');
    await third.release(longMs);
    await stage.client.del(record);
    const next = process.line();
    expect((await next.hold()).fence).toBeGreaterThan(fence);
    expect(await stage.client.type(record)).toBe(isNodeRedis ? 'string' : 'stream');
  });
}
