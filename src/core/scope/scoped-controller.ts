import { AsyncResource } from 'node:async_hooks';
import { processState } from '../base/process-state.ts';
import type { Controller } from '../lease/grant.ts';

/**
 * The `AbortController` of a branch's signal. Its listeners run in that branch. Otherwise they would run in the branch of the code
 * that aborts it, for example a timer that another request started, and their locks would belong to that request. The rest of
 * their async context is that of the code that first read the signal.
 */
export class ScopedController implements Controller {
  readonly signal: AbortSignal;
  readonly abort: (reason: unknown) => void;

  constructor(branch: object) {
    const controller = new AbortController();
    this.signal = controller.signal;
    // The calling code may be a job within, or another request that was given the hold: either may end before the abort.
    this.abort = processState().branches.run(branch, () =>
      AsyncResource.bind((reason: unknown) => controller.abort(reason)),
    );
  }
}
