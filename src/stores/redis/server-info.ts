import { type Clock, type Instant, systemClock } from '../../core/base/clock.ts';
import type { ServerWarning, StoreListener } from '../../core/model/store.ts';
import type { RedisDriver } from './drivers/driver.ts';
import { connected, storeError } from './errors.ts';

/**
 * Sends a warning for a server that cannot keep locks: it may evict them, or it is too old. Checks every primary of a cluster.
 * Skips a server that refuses INFO: the user may lack the right.
 */
export function warnOfServer(driver: RedisDriver, listener: StoreListener): void {
  infosOf(driver).then(
    (infos) => {
      for (const warning of [evictionWarning(infos), versionWarning(infos)]) {
        if (warning !== undefined) listener({ kind: 'warning', ...warning });
      }
    },
    () => undefined, // Not allowed, or not connected: the lock calls themselves will fail.
  );
}

/** The warning to send if any server may evict locks, by its `INFO`. */
export function evictionWarning(infos: readonly string[]): ServerWarning | undefined {
  const policies = infos.map((info) => /^maxmemory_policy:(\S+)/m.exec(info)?.[1]);
  const policy = policies.find((name) => name !== undefined && name !== 'noeviction');
  if (policy === undefined) return undefined;
  const message = `Expected the lock store's \`maxmemory-policy\` to be \`noeviction\`, got \`${policy}\`: the server may evict locks that are held. Set it to \`noeviction\``;
  return { code: 'LOCK_EVICTION', message };
}

/** The scripts read several scores in one call, which Redis 6.2 introduced, but only when there are waiters. */
function versionWarning(infos: readonly string[]): ServerWarning | undefined {
  const versions = infos.map((info) => /^redis_version:((\d+)\.(\d+)\S*)/m.exec(info));
  const old = versions.find((version) => version && Number(version[2]) + Number(version[3]) / 100 < 6.02);
  if (!old) return undefined;
  const message = `Expected the lock store's server to be Redis 6.2 or newer, got Redis ${old[1]}: it grants free keys, but calls fail as soon as a request waits for a lock. Upgrade the server`;
  return { code: 'LOCK_REDIS_OLD', message };
}

async function infosOf(driver: RedisDriver): Promise<string[]> {
  const { cluster } = driver;
  await driver.connection.connected();
  const servers = cluster === undefined ? [driver] : cluster.primaries().map((primary) => cluster.node(primary));
  return Promise.all(servers.flatMap((server) => server?.send(['info']) ?? []).map(async (info) => String(await info)));
}

interface KnownUptime {
  readonly epoch: unknown;
  readonly uptimeMs: number;
  readonly receivedAt: Instant;
}

/**
 * Knows how long a Redis server has been running. Asks it once for each connection, since a restart closes them all. The user
 * needs the right to call INFO. A cluster is not supported: it has no single uptime.
 */
export class ServerUptime {
  readonly #driver: RedisDriver;
  readonly #clock: Clock;
  #known: KnownUptime | undefined;

  constructor(driver: RedisDriver, clock: Clock = systemClock) {
    this.#driver = driver;
    this.#clock = clock;
  }

  /** Milliseconds: never more than the true uptime, and at most two seconds less. Rejects with a `LockStoreError`. */
  async uptimeMs(): Promise<number> {
    const driver = this.#driver;
    if (driver.cluster) throw storeError(driver, 'uptime', new Error('A cluster has no single uptime'));
    await connected(driver, 'uptime');
    const epoch = driver.connectionEpoch();
    if (epoch !== undefined && this.#known?.epoch === epoch) return this.#since(this.#known);
    const info = await driver.send(['info', 'server']).catch((error: unknown) => {
      throw storeError(driver, 'uptime', error);
    });
    const seconds = /^uptime_in_seconds:(-?\d+)/m.exec(String(info))?.[1];
    if (seconds === undefined) throw storeError(driver, 'uptime', new Error('INFO has no uptime_in_seconds'));
    // The server rounds its start and the current time to seconds, so the difference may be one too many. It is negative
    // if the server's clock was set back since the start; then only the age of the connection is known.
    const uptimeMs = Math.max(0, Number(seconds) - 1) * 1000;
    // Counted from the reply: from the call, the call's own duration would be added. Kept for the connection on which the
    // call was sent: if that ended meanwhile, another server may have replied, and the next call asks again.
    this.#known = { epoch, uptimeMs, receivedAt: this.#clock.now() };
    return uptimeMs;
  }

  /** By the monotonic clock: the wall clock may step. */
  #since({ uptimeMs, receivedAt }: KnownUptime): number {
    return uptimeMs + this.#clock.now().monoMs - receivedAt.monoMs;
  }
}
