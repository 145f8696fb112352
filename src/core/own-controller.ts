import { AsyncResource } from 'node:async_hooks';
import { runInScope } from './context.ts';
import type { Scope } from './scope.ts';

/**
 * An `AbortController` of a request or job, in whose scope its listeners run; what else is in the async context, they have
 * from whoever first asked for the signal. Else they would run in that of whoever aborts it: a timer that another request
 * has started, for example, and what they lock would belong to that one.
 */
export class OwnController {
  readonly signal: AbortSignal;
  readonly abort: (reason: unknown) => void;

  constructor(scope: Scope) {
    const controller = new AbortController();
    this.signal = controller.signal;
    // Who asks may be a job within, or another request that was handed the hold: either may be over by then.
    this.abort = runInScope(scope, () => AsyncResource.bind((reason: unknown) => controller.abort(reason)));
  }
}
