import type { MaybePromise } from './maybe-promise.ts';

/** What comes of a call, once. A promise is made of it only where somebody asks for one. */
export class Deferred<T> {
  readonly #mayBeIgnored: boolean;
  #state: 'open' | 'resolved' | 'rejected' = 'open';
  #value: T | undefined;
  #error: unknown;
  #promise: Promise<T> | undefined;
  /** Of the promise, where it was asked for before the outcome was there. */
  #settle: { resolve(value: T): void; reject(error: unknown): void } | undefined;

  /** With `mayBeIgnored`, a promise that nobody awaits does not end the process when it is rejected. */
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

  /** The value where it is there, else its promise. Throws the error where that is there. */
  get soon(): MaybePromise<T> {
    if (this.#state === 'rejected') throw this.#error;
    return this.#state === 'resolved' ? (this.#value as T) : this.promise;
  }

  /** Each time the same. */
  get promise(): Promise<T> {
    this.#promise ??= this.#made();
    return this.#promise;
  }

  #made(): Promise<T> {
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
