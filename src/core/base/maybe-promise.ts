/** A value, or a promise of it. A value lets the caller go on synchronously. */
export type MaybePromise<T> = T | PromiseLike<T>;

export function isPromise<T>(value: MaybePromise<T>): value is PromiseLike<T> {
  return typeof (value as Partial<PromiseLike<T>> | null | undefined)?.then === 'function';
}

/** Wraps a promise of the application: a foreign `then` may return nothing, or call back twice. */
export function toNative<T>(value: MaybePromise<T>): MaybePromise<T> {
  return isPromise(value) ? Promise.resolve(value) : value;
}

/** Continues with a value: synchronously, unless it is a promise. */
export function chain<T, R>(value: MaybePromise<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return isPromise(value) ? value.then(next) : next(value);
}

/** Continues with what `call` returns or throws: synchronously, unless it is a promise. As with `then`, calls one of both. */
export function settle<T, R>(
  call: () => MaybePromise<T>,
  onValue: (value: T) => MaybePromise<R>,
  onError: (error: unknown) => MaybePromise<R>,
): MaybePromise<R> {
  let value: MaybePromise<T>;
  try {
    value = call();
  } catch (error) {
    return onError(error);
  }
  // A foreign promise may call back from inside its own code.
  return isPromise(value) ? Promise.resolve(value).then(onValue, onError) : onValue(value);
}
