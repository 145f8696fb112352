import type { MaybePromise } from './maybe-promise.ts';

/** The result of a call, settled once from outside. Makes a promise only on demand. */
export class Deferred<T> {
  readonly #mayBeIgnored: boolean;
  #state: 'open' | 'resolved' | 'rejected' = 'open';
  #value: T | undefined;
  #error: unknown;
  #promise: Promise<T> | undefined;
  /** Settles the promise, if one was made while the result was open. */
  #settle: { resolve(value: T): void; reject(error: unknown): void } | undefined;

  /** With `mayBeIgnored`, a rejection that nobody awaits does not end the process. */
  constructor(mayBeIgnored: boolean) {
    this.#mayBeIgnored = mayBeIgnored;
  }

  resolve(value: T): void {
    this.#state = 'resolved';
    this.#value = value;
    this.#settle?.resolve(value);
  }

  reject(error: unknown): void {
    this.#state = 'rejected';
    this.#error = error;
    if (this.#mayBeIgnored) this.#promise?.catch(ignore);
    this.#settle?.reject(error);
  }

  /** The value if it is resolved, or a promise of it. Throws the error if it is rejected. */
  get valueOrPromise(): MaybePromise<T> {
    if (this.#state === 'rejected') throw this.#error;
    return this.#state === 'resolved' ? (this.#value as T) : this.promise;
  }

  /** Returns the same promise each time. */
  get promise(): Promise<T> {
    this.#promise ??= this.#makePromise();
    return this.#promise;
  }

  #makePromise(): Promise<T> {
    if (this.#state === 'resolved') return Promise.resolve(this.#value as T);
    if (this.#state === 'open') {
      return new Promise((resolve, reject) => {
        this.#settle = { resolve, reject };
      });
    }
    const rejected = Promise.reject(this.#error);
    if (this.#mayBeIgnored) rejected.catch(ignore);
    return rejected;
  }
}

function ignore(): void {}
