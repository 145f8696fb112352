import type { StoreListener } from '../../model/store.ts';
import type { CasWarning } from '../cas/adapter.ts';
import { isCluster, type RedisOrCluster } from './cluster/cluster.ts';

/**
 * Warns of a server that can't keep locks: it may evict them, or is too old. In a cluster every primary is asked. One that
 * won't say is left alone: its user may lack the right.
 */
export function warnOfServer(client: RedisOrCluster, listener: StoreListener): void {
  infosOf(client).then(
    (infos) => {
      for (const warning of [evictionWarning(infos), ageWarning(infos)]) {
        if (warning !== undefined) listener({ kind: 'warning', ...warning });
      }
    },
    () => undefined, // Not allowed, or not connected: the calls themselves will tell.
  );
}

/** What to warn of, if any server says by its `INFO` that it may evict locks. */
export function evictionWarning(infos: readonly string[]): CasWarning | undefined {
  const policies = infos.map((info) => /^maxmemory_policy:(\S+)/m.exec(info)?.[1]);
  const policy = policies.find((name) => name !== undefined && name !== 'noeviction');
  if (policy === undefined) return undefined;
  const message = `The lock store's \`maxmemory-policy\` is \`${policy}\`: it may evict locks that are held. Set it to \`noeviction\``;
  return { code: 'LOCK_EVICTION', message };
}

/** The scripts ask for several scores at once, which is new in 6.2; until somebody waits, they need not. */
function ageWarning(infos: readonly string[]): CasWarning | undefined {
  const versions = infos.map((info) => /^redis_version:((\d+)\.(\d+)\S*)/m.exec(info));
  const old = versions.find((version) => version && Number(version[2]) + Number(version[3]) / 100 < 6.02);
  if (!old) return undefined;
  const message = `The lock store's server is Redis ${old[1]}: it grants free keys, and fails as soon as anybody waits for one. Take 6.2 or newer`;
  return { code: 'LOCK_REDIS_OLD', message };
}

async function infosOf(client: RedisOrCluster): Promise<string[]> {
  const first = await client.info();
  if (!isCluster(client)) return [first];
  return Promise.all(client.nodes('master').map((node) => node.info()));
}
