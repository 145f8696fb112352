import { type Clock, outsideRequests, type Timer } from '../../base/clock.ts';
import { inTime, type PostgresClient, type PostgresResult } from './pool.ts';

/** What is used of a `Client` of the `pg` package. */
export interface PostgresListener extends PostgresClient {
  connect(): Promise<unknown>;
  end(): Promise<void>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'end', listener: () => void): unknown;
  on(event: 'notification', listener: (message: { channel: string; payload?: string | undefined }) => void): unknown;
  /** The number of the server's process, as the other side told it. */
  readonly processID?: number | null;
}

/** Who is told what comes of a session. */
export interface SessionListener {
  onMessage(channel: string, text: string): void;
  /** Once, when it ended and nobody had asked for that. */
  onEnd(error: Error): void;
}

const pingEveryMs = 5_000;
const pingDeadlineMs = 2_000;
/**
 * In half a minute the server gives up a session whose machine is gone: its own default is two hours. And it never ends one
 * for being idle, if it is of a version that could.
 */
const settings = [
  ['tcp_keepalives_idle', '10'],
  ['tcp_keepalives_interval', '5'],
  ['tcp_keepalives_count', '4'],
  ['idle_session_timeout', '0'],
];

/**
 * One connection that listens. It is pinged, so that one that is half-open is noticed. While it listens to the channel of a
 * process, it has an advisory lock of that name: by that the functions know that the process can be reached.
 */
export class ListenSession {
  readonly #create: () => PostgresListener;
  readonly #clock: Clock;
  readonly #listener: SessionListener;
  readonly #vouched = new Set<string>();
  #client: PostgresListener | undefined;
  /** Started by `watch`, cleared when the session is over. */
  #pingTimer: Timer | undefined;
  #lastAnswer: Promise<unknown> = Promise.resolve();
  #state: 'opening' | 'open' | 'over' = 'opening';

  constructor(create: () => PostgresListener, clock: Clock, listener: SessionListener) {
    this.#create = create;
    this.#clock = clock;
    this.#listener = listener;
  }

  async open(): Promise<void> {
    const client = this.#create();
    this.#client = client;
    let reason = new Error('The connection ended');
    client.on('error', (error) => {
      reason = error;
      this.#fail(reason);
    });
    client.on('end', () => this.#fail(reason));
    client.on('notification', ({ channel, payload = '' }) => this.#listener.onMessage(channel, payload));
    await client.connect();
    if (this.#state === 'opening') this.#state = 'open';
  }

  async listen(channel: string): Promise<void> {
    await this.#query(`LISTEN ${quoted(channel)}`);
  }

  async unlisten(channel: string): Promise<void> {
    await this.#query(`UNLISTEN ${quoted(channel)}`);
  }

  /** From now on the functions know that the channel is listened to. */
  async vouch(channel: string): Promise<void> {
    if (this.#vouched.has(channel)) return;
    this.#vouched.add(channel);
    await this.#query('SELECT pg_advisory_lock_shared(hashtextextended($1, 0))', [channel]);
  }

  async unvouch(channel: string): Promise<void> {
    if (!this.#vouched.delete(channel)) return;
    await this.#query('SELECT pg_advisory_unlock_shared(hashtextextended($1, 0))', [channel]);
  }

  /** From now on the connection is watched, from both ends. */
  async watch(): Promise<void> {
    const values = settings.map(([name, value]) => `('${name}', '${value}')`).join(', ');
    await this.#query(
      `SELECT set_config(name, value, false) FROM (VALUES ${values}) AS wanted (name, value) JOIN pg_settings USING (name)`,
    );
    this.#pingLater();
  }

  /** Whether a pooler stands in between: it gives its clients numbers of its own. */
  async isPooled(): Promise<boolean> {
    const { rows } = await this.#query('SELECT pg_backend_pid() AS pid');
    return (rows[0] as { pid: number }).pid !== this.#client?.processID;
  }

  /** Ends the connection; a half-open one is not waited for. */
  async close(): Promise<void> {
    const wasOpen = this.#state === 'open';
    if (!wasOpen || this.#client === undefined) return this.destroy();
    this.#over();
    await inTime(this.#clock, pingDeadlineMs, this.#client.end()).catch(() => this.destroy());
  }

  /** Ends the connection at once. */
  destroy(): void {
    this.#over();
    if (this.#client !== undefined) destroy(this.#client);
  }

  /** One after the other: a client does not take the next before it has the answer. */
  #query(text: string, values?: unknown[]): Promise<PostgresResult> {
    const send = async (): Promise<PostgresResult> => {
      if (this.#client === undefined || this.#state === 'over') throw new Error('The connection was closed');
      return this.#client.query(text, values);
    };
    const answer = this.#lastAnswer.then(send, send);
    this.#lastAnswer = answer;
    return answer;
  }

  #over(): void {
    this.#state = 'over';
    this.#pingTimer?.cancel();
  }

  #fail(error: Error): void {
    if (this.#state === 'over') return;
    this.destroy();
    this.#listener.onEnd(error);
  }

  #pingLater(): void {
    if (this.#state === 'over') return;
    const ping = async (): Promise<void> => {
      try {
        await inTime(this.#clock, pingDeadlineMs, this.#query('SELECT 1'));
        this.#pingLater();
      } catch (error) {
        this.#fail(error as Error);
      }
    };
    this.#pingTimer = outsideRequests(() => this.#clock.after(pingEveryMs, () => void ping()));
  }
}

/** A name as SQL takes it. */
function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** A client that is told to end says so to the server first, which a broken connection does not carry. */
function destroy(client: PostgresListener): void {
  const { connection } = client as { connection?: { stream?: { destroy?(): void } } };
  if (typeof connection?.stream?.destroy === 'function') connection.stream.destroy();
  else client.end().catch(() => {}); // Of another make; it is not used any more.
}
