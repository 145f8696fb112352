/** A value that is there at once, or comes later. */
export type MaybePromise<T> = T | PromiseLike<T>;

/** Whether it comes later. */
export function isPromise<T>(soon: MaybePromise<T>): soon is PromiseLike<T> {
  return typeof (soon as Partial<PromiseLike<T>> | null | undefined)?.then === 'function';
}

/** For what an application gives: a foreign promise may answer nothing to its `then`, or call back twice. */
export function native<T>(soon: MaybePromise<T>): MaybePromise<T> {
  return isPromise(soon) ? Promise.resolve(soon) : soon;
}

/** Goes on with a value: in the same turn where it is there. */
export function after<T, R>(soon: MaybePromise<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return isPromise(soon) ? soon.then(next) : next(soon);
}

/** Goes on with what `ask` answers, or throws: in the same turn where it is there. As with `then`, one of both is called. */
export function settle<T, R>(
  ask: () => MaybePromise<T>,
  onValue: (value: T) => MaybePromise<R>,
  onError: (error: unknown) => MaybePromise<R>,
): MaybePromise<R> {
  let soon: MaybePromise<T>;
  try {
    soon = ask();
  } catch (error) {
    return onError(error);
  }
  // A foreign promise may call back from inside its own code.
  return isPromise(soon) ? Promise.resolve(soon).then(onValue, onError) : onValue(soon);
}
