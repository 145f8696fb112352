import { AsyncResource } from 'node:async_hooks';
import { runInScope } from '../base/process-state.ts';
import type { Scope } from './scope.ts';

/**
 * The `AbortController` of a signal that belongs to a request or job: its listeners run in that one's scope. Else they would
 * run in that of whoever aborts it, a timer that another request has started for example, and what they lock would be that
 * one's. What else is in their async context is what whoever first asked for the signal had there.
 */
export class ScopedController {
  readonly signal: AbortSignal;
  readonly abort: (reason: unknown) => void;

  constructor(scope: Scope) {
    const controller = new AbortController();
    this.signal = controller.signal;
    // Who asks may be a job within, or another request that was handed the hold: either may be over by then.
    this.abort = runInScope(scope, () => AsyncResource.bind((reason: unknown) => controller.abort(reason)));
  }
}
