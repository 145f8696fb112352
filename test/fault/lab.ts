import { Redis } from 'ioredis';
import type { LocksOptions } from '../../src/core/index.ts';
import { RedisStore } from '../../src/stores/redis/redis-store.ts';
import { TcpProxy } from '../support/processes/tcp-proxy.ts';
import { disconnectTimeout } from '../support/redis/client.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { type Client, Crew } from './crew.ts';
import { type Entry, type Rules, violationsOf } from './history.ts';
import type { ClientSetup } from './processes/client.ts';
import type { StoreSetup } from './processes/open-store.ts';

const patience: LocksOptions = { waitMs: 60_000, storeTimeoutMs: 20_000, claimMs: 20_000 };

/** A server, a proxy before it, client processes, and what they all went through. */
export class Lab {
  readonly server: RedisServer;
  readonly proxy: TcpProxy;
  /** The test's own connection, past the proxy. */
  readonly admin: Redis;
  readonly #crew = new Crew();
  readonly #library: string | undefined;

  private constructor(server: RedisServer, proxy: TcpProxy, library: string | undefined) {
    this.server = server;
    this.proxy = proxy;
    this.#library = library;
    this.admin = new Redis(server.port, { retryStrategy: () => 10, maxRetriesPerRequest: null, disconnectTimeout });
    // A test of a server that is killed knows why.
    this.admin.on('error', () => {});
  }

  /** `library` names the one that the client processes connect with, as for `StoreSetup`. */
  static async start(args: readonly string[] = [], library?: string): Promise<Lab> {
    const server = await startRedis({ args });
    return new Lab(server, await TcpProxy.start(server.port), library);
  }

  get store(): RedisStore {
    return new RedisStore({ client: this.admin });
  }

  /** A new client process; its connections go through the proxy. Waiters, calls and claims last for as long as a busy machine takes. */
  async client(locks: LocksOptions = {}, over: Partial<ClientSetup> = {}): Promise<Client> {
    return this.#crew.join({
      store: this.setupFor(this.proxy.port),
      locks: { ...patience, ...locks },
      ...over,
    });
  }

  /** The store of a client process that connects to this port. */
  setupFor(port: number): StoreSetup {
    return { kind: 'redis', port, ...(this.#library !== undefined && { library: this.#library }) };
  }

  /** Some client processes, side by side. */
  clients(count: number, locks: LocksOptions = {}): Promise<Client[]> {
    return Promise.all(Array.from({ length: count }, () => this.client(locks)));
  }

  /** All that has happened so far. */
  get history(): Entry[] {
    return this.#crew.history;
  }

  /** Who waits for a key, in order, and who holds it, by the server. */
  async known(key: string): Promise<{ holders: string[]; waiters: string[]; fences: number[] }> {
    const { holds, waiters } = await this.store.inspect(key);
    return {
      holders: holds.map(({ owner }) => owner),
      waiters: waiters.map(({ owner }) => owner),
      fences: holds.map(({ fence }) => fence),
    };
  }

  /** Who waits for a key, in order, and has been told so: what disturbs its call sooner is an error. */
  async waiters(key: string): Promise<string[]> {
    const { waiters } = await this.known(key);
    const told = new Set(
      this.history.flatMap((entry) => (entry.kind === 'queued' ? [`${entry.owner} ${entry.key}`] : [])),
    );
    return waiters.filter((owner) => told.has(`${owner} ${key}`));
  }

  /** Who was told that it waits for a key, or has got it: behind a short lease, one may be served before all have come. */
  told(key: string): Set<string> {
    const told = this.history.filter((entry) => entry.key === key && ['queued', 'granted'].includes(entry.kind));
    return new Set(told.map(({ owner }) => owner as string));
  }

  /**
   * Ends all clients, each of which must end by itself, looks that nothing is left on the server, and checks the history.
   * Returns the history.
   */
  async end(rules: Rules = {}, { mayLeave = false }: { mayLeave?: boolean } = {}): Promise<Entry[]> {
    this.proxy.heal();
    await this.#crew.end();
    const history = this.history;
    const left = mayLeave ? [] : await this.#left();
    expect({ violations: violationsOf(history, rules), left }).toEqual({ violations: [], left: [] });
    return history;
  }

  /** Stops what runs, however the test went. */
  async stop(): Promise<void> {
    await this.#crew.stop();
    this.admin.disconnect();
    await this.proxy.stop();
    await this.server.stop();
  }

  /** Locks with a hold or a waiter of a process that was not killed. What those leave ends with its time. */
  async #left(): Promise<string[]> {
    const left: string[] = [];
    const { dead } = this.#crew;
    const isLiving = (owner: string): boolean => !dead.has(owner.split('.')[0] as string);
    for (const name of await this.admin.keys('reenlock:*')) {
      const key = /\{(.*)\}/.exec(name)?.[1] as string;
      const { holders, waiters } = await this.known(key);
      const owners = [...holders, ...waiters].filter(isLiving);
      if (owners.length > 0) left.push(`${name}: ${owners.join(' ')}`);
    }
    return left;
  }
}
