import type { Cluster, Redis } from 'ioredis';
import { CasStore, RedisCas, RedisStore } from 'reenlock/redis';
import { longMs } from '../../../src/testing/contract/harness.ts';
import { key, type StoreStage } from '../../../src/testing/contract/stage.ts';

/** Everything of a client that somebody else might have changed. */
export function looksOf(client: Redis | Cluster): Readonly<Record<string, unknown>> {
  const prototype = Object.getPrototypeOf(client) as object;
  return {
    status: client.status,
    options: { ...client.options },
    properties: Reflect.ownKeys(client).map(String).sort(),
    prototype: prototype,
    methods: Reflect.ownKeys(prototype).map(String).sort(),
    listeners: client.eventNames().map((name) => [String(name), client.listenerCount(name)]),
    maxListeners: client.getMaxListeners(),
    scripts: { ...(client as unknown as { scriptsSet: object }).scriptsSet },
    nodes: client.isCluster ? (client as Cluster).nodes().map(looksOf) : [],
  };
}

/**
 * Two processes do on the stage's store all that a store can: each waits for the other once, so that where grants come by
 * message, one does.
 */
export async function useEverything(stage: StoreStage): Promise<void> {
  const [one, two] = [await stage.process(), await stage.process()];
  const holder = one.line();
  const { fence } = await holder.hold();
  const [first, second] = [await two.line().wait(), await one.line().wait()];
  await holder.renew(fence);
  await Promise.all([holder.release(longMs), one.line().try(), stage.inspect()]);
  await two.granted(first);
  await stage.store.forceRelease(key, (await stage.inspect()).holds[0]!.fence);
  await one.granted(second);
  await second.release();
  await stage.end();
}

/** By name: how to use everything of a store that opens connections beside the client's. One waits for a replica. */
export const uses: Readonly<Record<string, (stage: StoreStage, client: Redis) => Promise<void>>> = {
  async RedisStore(stage, client) {
    stage.store = new RedisStore({ client });
    await useEverything(stage);
  },
  async 'RedisStore with waitReplicas'(stage, client) {
    stage.store = new RedisStore({ client, waitReplicas: 1 });
    await useEverything(stage);
  },
  async CasStore(stage, client) {
    const adapter = new RedisCas({ client });
    stage.store = new CasStore({ adapter });
    await useEverything(stage);
    adapter.close();
  },
};
