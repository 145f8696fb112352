import { AsyncResource } from 'node:async_hooks';

/**
 * An `AbortController` whose listeners run in the async context of whoever made it, the request or job that asked for its
 * signal. Else they would run in that of whoever aborts it: a timer that another request has started, for example, and what
 * they lock would belong to that one.
 */
export class OwnController {
  readonly signal: AbortSignal;
  readonly abort: (reason: unknown) => void;

  constructor() {
    const controller = new AbortController();
    this.signal = controller.signal;
    this.abort = AsyncResource.bind((reason: unknown) => controller.abort(reason));
  }
}
