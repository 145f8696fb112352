import type { ServerResponse } from 'node:http';
import { type Clock, lastedMs } from '../core/base/clock.ts';

/** Adds to a response's `Server-Timing` how long the guards of one request took to get their locks. It names no key. */
export class ServerTiming {
  readonly #clock: Clock;
  readonly #res: ServerResponse;
  #lockMs = 0;
  #metric: string | undefined;

  constructor(clock: Clock, res: ServerResponse) {
    this.#clock = clock;
    this.#res = res;
  }

  /** A guard begins. Call the returned function when it has its locks, or has failed to get them. */
  start(): () => void {
    const startedAt = this.#clock.now();
    return () => this.#add(lastedMs(this.#clock.now(), startedAt));
  }

  /** Puts the metric back if the header was removed or replaced. */
  restore(): void {
    if (this.#metric !== undefined) this.#put([...this.#others(), this.#metric]);
  }

  #add(ms: number): void {
    this.#lockMs += ms;
    const metric = `lock;dur=${this.#lockMs.toFixed(1)}`;
    this.#put([...this.#others(), metric]);
    this.#metric = metric;
  }

  /** The metrics of the application. */
  #others(): string[] {
    const header = this.#res.getHeader('Server-Timing');
    return [header ?? []]
      .flat()
      .map(String)
      .filter((each) => each !== this.#metric);
  }

  #put(metrics: readonly string[]): void {
    if (!this.#res.headersSent) this.#res.setHeader('Server-Timing', metrics);
  }
}
