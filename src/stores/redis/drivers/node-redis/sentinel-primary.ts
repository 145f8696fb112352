import { outsideRequests, systemClock } from '../../../../core/base/clock.ts';
import type { NodeRedisClient } from './calls.ts';
import { type Emitter, RelayedEvents } from './relayed-events.ts';

/** The used part of a node-redis client for Sentinel. */
export interface NodeRedisSentinel extends Emitter<'topology-change' | 'error'> {
  readonly isOpen: boolean;
  /** Undefined in a version without key prefixes. */
  readonly _keyPrefix?: unknown;
  /** Calls `use` with the connection to the primary, when there is one. No documented method returns that connection. */
  _execute(isReadonly: boolean, use: (primary: NodeRedisClient) => Promise<void>): Promise<void>;
}

const askAgainMs = 100;

/**
 * The connection that a client for Sentinel has to the primary. The client itself would send a call again on the connection
 * to the next primary if the one on which it was written is lost, and would keep calls that it can't send. The connection
 * does neither. A failover ends it, and there is another one.
 */
export class SentinelPrimary {
  /** Of the client, and of the connection. */
  readonly events: RelayedEvents;
  /** How many connections there were: it changes with a failover. */
  count = 0;
  readonly #sentinel: NodeRedisSentinel;
  #connection: NodeRedisClient | undefined;
  #isAsking = false;

  constructor(sentinel: NodeRedisSentinel) {
    this.#sentinel = sentinel;
    this.events = new RelayedEvents((events) => {
      events.watch(sentinel, 'topology-change', this.find);
      events.pass(sentinel, 'error', 'error');
      this.#listen();
    });
  }

  get state(): 'up' | 'down' | 'ended' {
    if (!this.#sentinel.isOpen) return 'ended';
    return this.#connection?.isReady ? 'up' : 'down';
  }

  /** The connection, as long as the client keeps it open: it connects again by itself. */
  get connection(): NodeRedisClient | undefined {
    return this.#connection?.isOpen ? this.#connection : undefined;
  }

  /** Finds the connection if none is known. */
  readonly find = (): void => {
    if (this.#isAsking || this.connection !== undefined || !this.#sentinel.isOpen) return;
    this.#isAsking = true;
    const asked = outsideRequests(() => this.#sentinel._execute(false, async (found) => this.#adopt(found)));
    const onReply = (): void => {
      this.#isAsking = false;
    };
    asked.then(onReply, () => {
      onReply();
      // The client has no primary yet, or has given up for now. The timer is unref'd, and does nothing if nobody waits.
      systemClock.after(askAgainMs, () => {
        if (this.events.isListened) this.find();
      });
    });
  };

  #adopt(found: NodeRedisClient): void {
    if (found === this.#connection) return;
    this.#connection = found;
    this.count += 1;
    if (this.events.isListened) this.#listen();
  }

  #listen(): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    this.events.pass(connection, 'ready', 'ready');
    this.events.pass(connection, 'error', 'error');
    if (connection.isReady) this.events.emitReady();
  }
}
