import type { Clock } from './clock.ts';

/** Settles as `reply` does, or rejects after `ms`: a client library is not trusted to settle. The reply clears the timer. */
export function inTime<T>(clock: Clock, ms: number, reply: Promise<T>, onLate: () => void = () => {}): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(ms, () => {
      onLate();
      reject(new Error(`Expected a reply within ${ms} ms, got none`));
    });
    reply.then(resolve, reject).finally(() => timer.cancel());
  });
}
