import { Readable } from 'node:stream';
import type { LockScanner } from './lock-scanner.ts';

/** A user who may look at the board. */
export interface BoardUser {
  /** Shown on the page, and passed to the listeners of `forced` as `by`. */
  readonly name: string;
  /** Whether the user may force-release locks. Default false. */
  readonly mayForceRelease?: boolean | undefined;
}

/** How many rows one message has: for a slow viewer, the process keeps only a few of them. */
const rowsAtOnce = 100;

/** The stream of Server-Sent Events of one open page. It sends the changes since its last message. */
export class Viewer extends Readable {
  #user: BoardUser;
  readonly #scanner: LockScanner;
  readonly #nowMs: () => number;
  /** The names of the locks to send. Each is looked up when it is sent: a slow viewer gets only the newest state. */
  readonly #changed: Set<string>;
  /** Whether the socket takes more. */
  #isReady = true;
  /** Whether the last message was incomplete. */
  #isBehind = false;
  #readySinceMs: number;
  #sentMs = Number.NEGATIVE_INFINITY;
  #sentStatus = '';
  #hasLeft = false;

  /** `nowMs` is the monotonic clock. */
  constructor(user: BoardUser, scanner: LockScanner, nowMs: () => number) {
    super();
    this.#user = user;
    this.#scanner = scanner;
    this.#nowMs = nowMs;
    this.#readySinceMs = nowMs();
    this.#changed = new Set(scanner.rows.keys());
    this.#greet();
    this.flush();
  }

  /** For how many milliseconds it has read nothing although there is something to read. */
  get stalledMs(): number {
    return this.#isReady ? 0 : this.#nowMs() - this.#readySinceMs;
  }

  changed(id: string): void {
    this.#changed.add(id);
  }

  /** Sends the rights of the page's user, if they have changed. */
  setUser(user: BoardUser): void {
    const isSame = user.name === this.#user.name && user.mayForceRelease === this.#user.mayForceRelease;
    this.#user = user;
    if (!isSame) this.#greet();
  }

  /** Sends the changes. Without changes, sends only if the last message was at least `quietMs` ago. */
  flush(quietMs = 0): void {
    if (this.#hasLeft) return;
    while (this.#isReady && (this.#changed.size > 0 || this.#isBehind)) this.#update();
    const isQuiet = this.#nowMs() - this.#sentMs >= quietMs;
    if (this.#isReady && (isQuiet || this.#status() !== this.#sentStatus)) this.#update();
  }

  /** Sends the reason for its end, and ends. */
  leave(reason: 'denied' | 'closing'): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#send('leave', JSON.stringify({ reason }));
    this.push(null);
  }

  override _read(): void {
    this.#isReady = true;
    // The rest of the begun messages; later changes wait for the next flush.
    if (this.#isBehind) this.flush();
  }

  #greet(): void {
    this.#send('user', JSON.stringify(this.#user));
  }

  #update(): void {
    const rows: string[] = [];
    const gone: string[] = [];
    for (const id of this.#changed) {
      if (rows.length + gone.length === rowsAtOnce) break;
      this.#changed.delete(id);
      const row = this.#scanner.rows.get(id);
      if (row === undefined) gone.push(id);
      else rows.push(row);
    }
    this.#isBehind = this.#changed.size > 0;
    const isFirst = this.#sentMs === Number.NEGATIVE_INFINITY;
    this.#sentStatus = this.#status();
    this.#sentMs = this.#nowMs();
    const nowMs = this.#scanner.storeNowMs;
    const rest = `"rows":[${rows.join()}],"gone":${JSON.stringify(gone)},"status":${this.#sentStatus}`;
    this.#send('update', `{"nowMs":${nowMs},"isFirst":${isFirst},${rest}}`);
  }

  #status(): string {
    const { failedSinceMs, ...status } = this.#scanner.status;
    // In whole seconds: it is a part of what is compared.
    const failedMs =
      failedSinceMs === undefined ? undefined : Math.floor((this.#nowMs() - failedSinceMs) / 1_000) * 1_000;
    return JSON.stringify({ ...status, failedMs });
  }

  #send(event: string, data: string): void {
    this.#readySinceMs = this.#nowMs();
    this.#isReady = this.push(`event: ${event}\ndata: ${data}\n\n`);
  }
}
