import type { CasWarning } from './cas-adapter.ts';
import { isCluster, type RedisOrCluster } from './redis-cluster.ts';
import type { StoreListener } from './store.ts';

/**
 * Warns where a server may evict locks: it can't keep them. In a cluster every primary is asked. One that won't say is
 * left alone: its user may lack the right.
 */
export function checkEviction(client: RedisOrCluster, listener: StoreListener): void {
  memoryInfos(client).then(
    (infos) => {
      const warning = evictionWarning(infos);
      if (warning !== undefined) listener({ kind: 'warning', ...warning });
    },
    () => undefined, // Not allowed, or not connected: the calls themselves will tell.
  );
}

/** What to warn of, if any server says by its `INFO memory` that it may evict locks. */
export function evictionWarning(infos: readonly string[]): CasWarning | undefined {
  const policies = infos.map((info) => /^maxmemory_policy:(\S+)/m.exec(info)?.[1]);
  const policy = policies.find((name) => name !== undefined && name !== 'noeviction');
  if (policy === undefined) return undefined;
  const message = `The lock store's \`maxmemory-policy\` is \`${policy}\`: it may evict locks that are held. Set it to \`noeviction\``;
  return { code: 'LOCK_EVICTION', message };
}

async function memoryInfos(client: RedisOrCluster): Promise<string[]> {
  const first = await client.info('memory');
  if (!isCluster(client)) return [first];
  return Promise.all(client.nodes('master').map((node) => node.info('memory')));
}
