/** A value that is there at once, or comes later. */
export type Soon<T> = T | PromiseLike<T>;

/** Whether it comes later. */
export function isLater<T>(soon: Soon<T>): soon is PromiseLike<T> {
  return typeof (soon as Partial<PromiseLike<T>> | null | undefined)?.then === 'function';
}

/** For what an application gives: a foreign promise may answer nothing to its `then`, or call back twice. */
export function native<T>(soon: Soon<T>): Soon<T> {
  return isLater(soon) ? Promise.resolve(soon) : soon;
}

/** Goes on with a value: in the same turn where it is there. */
export function after<T, R>(soon: Soon<T>, next: (value: T) => Soon<R>): Soon<R> {
  return isLater(soon) ? soon.then(next) : next(soon);
}

/** Goes on with what `ask` answers, or throws: in the same turn where it is there. As with `then`, one of both is called. */
export function settle<T, R>(
  ask: () => Soon<T>,
  onValue: (value: T) => Soon<R>,
  onError: (error: unknown) => Soon<R>,
): Soon<R> {
  let soon: Soon<T>;
  try {
    soon = ask();
  } catch (error) {
    return onError(error);
  }
  // A foreign promise may call back from inside its own code.
  return isLater(soon) ? Promise.resolve(soon).then(onValue, onError) : onValue(soon);
}
