/**
 * How far the work on a request is:
 * - `open`: the server's code has not ended the response.
 * - `ended`: it has ended the response; awaited middleware still runs.
 * - `closed`: the response is closed, but not by the server's code: the client disconnected, and the handler may work on.
 * - `done`: the work has ended.
 */
export type WorkPhase = 'open' | 'ended' | 'closed' | 'done';

/** How the framework handles a request, as far as its response does not show it. */
export interface WorkOptions {
  /** Whether middleware is awaited (Koa): the work lasts until it has settled. */
  readonly awaitsMiddleware: boolean;
  /** Whether the application ends the response itself, without the framework (`ctx.respond = false`). */
  readonly isDetached?: () => boolean;
  /**
   * Whether another protocol, such as WebSocket, has taken the connection over from the response, which no code will end. Then
   * the work ends when the connection closes.
   */
  readonly isTakenOver?: () => boolean;
}

/**
 * Decides when the work on a request ends. Without awaited middleware, it ends when the response has ended and all begun work has
 * settled. With it, the middleware must have settled as well. Then a failure or a closed response also ends the work: the
 * framework itself ends every other response.
 */
export class WorkState {
  #phase: WorkPhase = 'open';
  #middleware: 'awaited' | 'settled' | 'failed' = 'awaited';
  #running = 0;
  /** They may lead to the request, which nothing of finished work may keep in memory. */
  #options: WorkOptions | undefined;
  readonly #onDone: () => void;

  /** `onDone` is called once, synchronously with the call that ends the work. */
  constructor(options: WorkOptions, onDone: () => void) {
    this.#options = options;
    this.#onDone = onDone;
  }

  get phase(): WorkPhase {
    return this.#phase;
  }

  /** The server's code has ended the response. */
  end(): void {
    if (this.#phase !== 'done') this.#moveTo('ended');
  }

  /** The response is closed. That changes nothing if the server's code had ended it before. */
  close(): void {
    if (this.#phase === 'open') this.#moveTo(this.#options?.isTakenOver?.() === true ? 'ended' : 'closed');
  }

  /** Call it when middleware begins; one call of `leave` must follow. */
  enter(): void {
    this.#running += 1;
    this.#middleware = 'awaited';
  }

  /** Middleware has settled. If it is nested, the outermost one decides whether it has failed. */
  leave(hasFailed: boolean): void {
    this.#running -= 1;
    if (this.#running > 0) return;
    this.#middleware = hasFailed ? 'failed' : 'settled';
    if (this.#phase !== 'done') this.#moveTo(this.#phase);
  }

  #moveTo(phase: 'open' | 'ended' | 'closed'): void {
    this.#phase = phase;
    if (!this.#isFinished()) return;
    this.#phase = 'done';
    this.#options = undefined;
    this.#onDone();
  }

  #isFinished(): boolean {
    if (!this.#options?.awaitsMiddleware) return this.#phase === 'ended' && this.#running === 0;
    if (this.#middleware === 'awaited') return false;
    if (this.#middleware === 'failed' || this.#phase === 'ended') return true;
    return this.#phase === 'closed' && this.#options?.isDetached?.() !== true;
  }
}
