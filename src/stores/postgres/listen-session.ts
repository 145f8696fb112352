import { type Clock, inTime, outsideRequests, type Timer } from '../../core/base/clock.ts';
import { listenTo } from '../../core/base/safely.ts';
import type { PostgresClient, PostgresResult } from './pool.ts';
import { serverName } from './sql/server-name.ts';

/** The part of a `Client` of the `pg` package that is used. */
export interface PostgresListener extends PostgresClient {
  connect(): Promise<unknown>;
  end(): Promise<void>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'end', listener: () => void): unknown;
  on(event: 'notification', listener: (message: { channel: string; payload?: string | undefined }) => void): unknown;
  /** The process id of the server's side, as it was reported when the client connected. */
  readonly processID?: number | null;
}

/** Events of a session. */
export interface SessionListener {
  onMessage(channel: string, text: string): void;
  /** Called once, if the session ended without `close` or `destroy`. */
  onEnd(error: Error): void;
}

const pingEveryMs = 5_000;
const pingDeadlineMs = 2_000;
/**
 * Half a minute after a client machine has died, the server ends its session; by default that takes two hours. The server
 * must not end a session because it is idle. Older versions lack that setting, and never do.
 */
const settings = [
  ['tcp_keepalives_idle', '10'],
  ['tcp_keepalives_interval', '5'],
  ['tcp_keepalives_count', '4'],
  ['idle_session_timeout', '0'],
];

/**
 * One connection that listens. Its pings detect a half-open connection. While it listens to the channel of a process, it has an
 * advisory lock of that name, which shows the SQL functions that the process can be reached.
 */
export class ListenSession {
  readonly #create: () => PostgresListener;
  readonly #clock: Clock;
  readonly #listener: SessionListener;
  readonly #reachable = new Set<string>();
  #client: PostgresListener | undefined;
  /** Started by `watch`, cleared when the session ends. */
  #pingTimer: Timer | undefined;
  #lastReply: Promise<unknown> = Promise.resolve();
  #server: string | undefined;
  #state: 'opening' | 'open' | 'ended' = 'opening';

  constructor(create: () => PostgresListener, clock: Clock, listener: SessionListener) {
    this.#create = create;
    this.#clock = clock;
    this.#listener = listener;
  }

  async open(): Promise<void> {
    const client = this.#create();
    this.#client = client;
    let reason = new Error('The connection ended');
    type Notification = { readonly channel: string; readonly payload?: string | undefined };
    listenTo(client, 'error', (error: Error) => {
      reason = error;
      this.#fail(reason);
    });
    listenTo(client, 'end', () => this.#fail(reason));
    listenTo(client, 'notification', ({ channel, payload = '' }: Notification) =>
      this.#listener.onMessage(channel, payload),
    );
    await client.connect();
    if (this.#state === 'opening') this.#state = 'open';
  }

  async listen(channel: string): Promise<void> {
    await this.#query(`LISTEN ${quoted(channel)}`);
  }

  async unlisten(channel: string): Promise<void> {
    await this.#query(`UNLISTEN ${quoted(channel)}`);
  }

  /** Shows the SQL functions that this session listens to the channel. */
  async markReachable(channel: string): Promise<void> {
    if (this.#reachable.has(channel)) return;
    this.#reachable.add(channel);
    await this.#query('SELECT pg_advisory_lock_shared(hashtextextended($1, 0))', [channel]);
  }

  async unmarkReachable(channel: string): Promise<void> {
    if (!this.#reachable.delete(channel)) return;
    await this.#query('SELECT pg_advisory_unlock_shared(hashtextextended($1, 0))', [channel]);
  }

  /** Makes both ends notice a broken connection, and asks for the name of the server. */
  async watch(): Promise<void> {
    const values = settings.map(([name, value]) => `('${name}', '${value}')`).join(', ');
    await this.#query(
      `SELECT set_config(name, value, false) FROM (VALUES ${values}) AS wanted (name, value) JOIN pg_settings USING (name)`,
    );
    const { rows } = await this.#query(`SELECT ${serverName} AS server`);
    this.#server = (rows[0] as { server: string }).server;
    this.#pingLater();
  }

  /**
   * Ends the session if it is on another server. After a planned switch of the primary, the former one may live on: it replies to
   * pings, and never gets a message.
   */
  expectServer(server: string): void {
    if (this.#server !== undefined && this.#server !== server) {
      this.#fail(
        new Error('Expected to listen on the server that the pool leads to, which has changed: connecting again'),
      );
    }
  }

  /** Whether this is a session of a pooler on a server: a pooler reports other process ids to its clients. */
  async isPooledOn(server: string): Promise<boolean> {
    const { rows } = await this.#query(`SELECT pg_backend_pid() AS pid, ${serverName} AS server`);
    const own = rows[0] as { readonly pid: number; readonly server: string };
    return own.server === server && own.pid !== this.#client?.processID;
  }

  /** Ends the connection. Does not wait for a half-open one. */
  async close(): Promise<void> {
    const wasOpen = this.#state === 'open';
    if (!wasOpen || this.#client === undefined) return this.destroy();
    this.#markEnded();
    await inTime(this.#clock, pingDeadlineMs, this.#client.end()).catch(() => this.destroy());
  }

  /** Ends the connection at once. */
  destroy(): void {
    this.#markEnded();
    if (this.#client !== undefined) destroy(this.#client);
  }

  /** Sends one query after the other, as a client expects. */
  #query(text: string, values?: unknown[]): Promise<PostgresResult> {
    const send = async (): Promise<PostgresResult> => {
      if (this.#client === undefined || this.#state === 'ended')
        throw new Error('Expected an open connection, got one that was closed');
      return this.#client.query(text, values);
    };
    const reply = this.#lastReply.then(send, send);
    this.#lastReply = reply;
    return reply;
  }

  #markEnded(): void {
    this.#state = 'ended';
    this.#pingTimer?.cancel();
  }

  #fail(error: Error): void {
    if (this.#state === 'ended') return;
    this.destroy();
    this.#listener.onEnd(error);
  }

  #pingLater(): void {
    if (this.#state === 'ended') return;
    const ping = async (): Promise<void> => {
      try {
        await inTime(this.#clock, pingDeadlineMs, this.#query('SELECT 1'));
        this.#pingLater();
      } catch (error) {
        this.#fail(error as Error);
      }
    };
    this.#pingTimer = outsideRequests(() => this.#clock.after(pingEveryMs, ping));
  }
}

/** A name as an SQL identifier. */
function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** `end` would first send a message to the server, and a broken connection can't send it. */
function destroy(client: PostgresListener): void {
  const { connection } = client as { connection?: { stream?: { destroy?(): void } } };
  if (typeof connection?.stream?.destroy === 'function') connection.stream.destroy();
  else client.end().catch(() => {}); // Not a client of pg itself. It is no longer used.
}
