/** A value, or a promise of it. With a value, the caller continues synchronously. */
export type MaybePromise<T> = T | PromiseLike<T>;

export function isPromise<T>(value: MaybePromise<T>): value is PromiseLike<T> {
  return typeof (value as Partial<PromiseLike<T>> | null | undefined)?.then === 'function';
}

/** Passes the result or error of `call` to one of two callbacks, as `then` does, but synchronously unless it is a promise. */
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
  return isPromise(value) ? value.then(onValue, onError) : onValue(value);
}
