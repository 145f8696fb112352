import { outsideRequests, systemClock } from '../../../../core/base/clock.ts';
import { guarded } from '../../../../core/base/safely.ts';
import type { NodeRedisClient, ReplyOptions } from './calls.ts';
import { type Emitter, RelayedEvents } from './relayed-events.ts';

/** The used part of a node-redis client for a cluster. */
export interface NodeRedisCluster extends Emitter<'connect' | 'error' | 'node-ready' | 'node-connect' | 'node-error'> {
  readonly isOpen: boolean;
  /** Undefined in a version that can be used as soon as it is open. */
  readonly isReady?: boolean;
  /** Undefined in a version without key prefixes. */
  readonly _keyPrefix?: unknown;
  readonly masters: readonly NodeRedisNode[];
  readonly nodeByAddress: ReadonlyMap<string, NodeRedisNode>;
  /** Empty at a slot that no primary has. */
  readonly slots: readonly ({ readonly master: NodeRedisNode } | undefined)[];
  /** Makes the client read the slots again. It has no documented way to do so before a server redirects a call. */
  readonly _slots: { rediscover(startWith: NodeRedisClient | undefined): Promise<void> };
  nodeClient(node: NodeRedisNode): Promise<unknown>;
  destroy(): void;
  sendCommand(
    firstKey: string | undefined,
    isReadonly: boolean,
    args: readonly string[],
    options: ReplyOptions,
  ): Promise<unknown>;
}

/** A server of a cluster. */
export interface NodeRedisNode {
  readonly address: string;
  /** The connection to it; undefined if the client has none. It connects again by itself. */
  readonly client?: NodeRedisClient | undefined;
}

const lookAgainMs = 500;

/** The servers that a client of node-redis for a cluster knows, and its connections to them. */
export class ClusterNodes {
  /** Of the client, and of all of its connections. */
  readonly events: RelayedEvents;
  readonly #cluster: NodeRedisCluster;
  #isLooking = false;
  #refreshing: Promise<void> | undefined;

  constructor(cluster: NodeRedisCluster) {
    this.#cluster = cluster;
    this.events = new RelayedEvents((events) => {
      events.pass(cluster, 'connect', 'ready');
      events.pass(cluster, 'error', 'error');
      // Some versions emit it only the first time that a connection is ready.
      events.pass(cluster, 'node-ready', 'ready');
      events.pass(cluster, 'node-error', 'error');
      for (const { client } of cluster.nodeByAddress.values()) if (client) events.pass(client, 'ready', 'ready');
    });
  }

  /** It is up with a connection to any primary: the others may be gone for good. */
  get state(): 'up' | 'down' | 'ended' {
    const { isOpen, isReady = isOpen, masters } = this.#cluster;
    if (!isOpen) return 'ended';
    return isReady && masters.some(({ client }) => client?.isReady) ? 'up' : 'down';
  }

  /** The connections that are open now. */
  get connections(): readonly NodeRedisClient[] {
    return [...this.#cluster.nodeByAddress.values()].flatMap(({ client }) => (client?.isReady ? [client] : []));
  }

  /** Whether a connection, open or not, is to a server that the client has found to be gone. */
  isGone(connection: NodeRedisClient): boolean {
    const nodes = [...this.#cluster.nodeByAddress.values()];
    return nodes.length > 0 && !nodes.some(({ client }) => client === connection);
  }

  /** The addresses of all primaries. */
  get primaries(): readonly string[] {
    return this.#cluster.masters.map(({ address }) => address);
  }

  primaryOfSlot(slot: number): string | undefined {
    return this.#cluster.slots[slot]?.master.address;
  }

  /** The connection to a server, if it is open. */
  connectionTo(address: string | undefined): NodeRedisClient | undefined {
    const client = this.#cluster.nodeByAddress.get(address ?? '')?.client;
    return client?.isReady ? client : undefined;
  }

  /** Makes the client connect to a server, if it does so on demand. */
  connect(address: string | undefined): void {
    const node = this.#cluster.nodeByAddress.get(address ?? '');
    // The client also emits this error.
    if (this.#cluster.isOpen && node !== undefined && node.client === undefined)
      this.#cluster.nodeClient(node).catch(() => undefined);
  }

  /**
   * Makes the client connect to one primary, and to the next one as long as none is connected and somebody waits: a primary
   * may hang, or be replaced meanwhile, and the client itself would not look for another one.
   */
  readonly connectToAny = (): void => {
    if (this.#isLooking) return;
    this.#isLooking = true;
    outsideRequests(() => this.#look(0));
  };

  #look(tries: number): void {
    const { primaries } = this;
    this.connect(primaries[tries % primaries.length]);
    // The timer is unref'd.
    systemClock.after(lookAgainMs, () => {
      this.#isLooking = this.state === 'down' && this.events.isListened;
      if (!this.#isLooking) return;
      // The client also emits this error. Before it knows a primary, it reads the slots itself.
      if (primaries.length > 0) this.refresh().catch(() => undefined);
      this.#look(tries + 1);
    });
  }

  /** Reads the slots again, from a server that is connected if there is one. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#readSlots().finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  /** A client that is closed meanwhile would connect to all servers again, and nobody would close it a second time. */
  async #readSlots(): Promise<void> {
    const cluster = this.#cluster;
    const [connected] = this.connections;
    const closeAgain = guarded(() => {
      if (!cluster.isOpen) cluster.destroy();
    });
    for (const event of ['node-connect', 'node-error'] as const) cluster.on(event, closeAgain);
    try {
      await cluster._slots.rediscover(connected ?? cluster.masters[0]?.client);
    } finally {
      for (const event of ['node-connect', 'node-error'] as const) cluster.off(event, closeAgain);
    }
  }
}
