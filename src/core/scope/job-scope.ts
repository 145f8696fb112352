import { onAbort } from '../base/abort-signals.ts';
import { Scope } from './scope.ts';

/**
 * The scope of a job. A job may be told to stop: its signal is aborted then, and no acquire of it waits any longer. It
 * still gets what is free, and what it holds stays held until its work has ended.
 */
export class JobScope extends Scope {
  #stops: readonly AbortSignal[] = [];

  /** What tells the job to stop; jobs within it stop with it. */
  get stops(): readonly AbortSignal[] {
    return this.#stops;
  }

  get isStopped(): boolean {
    return this.hasClientLeft;
  }

  /** Stops when one of the signals is aborted, or was. Nothing listens to them any more once the job is over. */
  obey(stops: readonly AbortSignal[]): void {
    if (stops.length === 0) return;
    this.#stops = stops;
    const forget = stops.map((signal) => onAbort(signal, () => this.abort(signal.reason)));
    // Stopped or over: there is nothing left to be told.
    const unwatch = this.onChange(() => {
      // What `waitUntil` postpones is to be stopped, too.
      if (!this.isStopped && !this.isOver) return;
      unwatch();
      for (const each of forget) each();
    });
    const aborted = stops.find((signal) => signal.aborted);
    if (aborted !== undefined) this.abort(aborted.reason);
  }
}
