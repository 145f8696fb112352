import type { LockEvent, Locks } from '../core/index.ts';
import type { LockNames } from './lock-names.ts';

/** The labels of the two histograms. */
export interface DurationLabels {
  readonly lock: string;
  readonly mode: string;
  readonly outcome: string;
}

/** The histograms and counters of one metrics library. */
export interface LockObserver {
  /** Called once for each lock and mode, at its first grant: from then on, absent events can be reported as zero. */
  onLock?(labels: Omit<DurationLabels, 'outcome'>): void;
  onAcquire(seconds: number, labels: DurationLabels): void;
  onHold(seconds: number, labels: DurationLabels): void;
  onStoreError(labels: { readonly operation: string; readonly outcome: string }): void;
  onStoreDown(isDown: boolean): void;
  onFailedOpen(): void;
  onOverlap(labels: { readonly lock: string }): void;
  onHeaderRefused(labels: { readonly reason: string }): void;
}

/** The buckets of the two histograms, in seconds. */
export const acquireBuckets: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
];
export const holdBuckets: readonly number[] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300];

/** Calls an observer with the events of a `Locks`. Returns a function that stops this. */
export function observeLocks(locks: Locks, names: LockNames, observer: LockObserver): () => void {
  const labels = (event: LockEvent, outcome: string): DurationLabels => ({
    lock: names.of(event),
    mode: event.mode,
    outcome,
  });
  const known = new Set<string>();
  const onGranted = ({ lock, mode }: DurationLabels): void => {
    const id = `${mode} ${lock}`;
    if (known.has(id)) return;
    known.add(id);
    observer.onLock?.({ lock, mode });
  };
  const unsubscribes = [
    ...(['granted', 'refused', 'timeout', 'aborted', 'deadlock'] as const).map((outcome) =>
      locks.on(outcome, (event) => {
        const ofEvent = labels(event, outcome);
        if (outcome === 'granted') onGranted(ofEvent);
        observer.onAcquire(event.waitedMs / 1000, ofEvent);
      }),
    ),
    ...(['released', 'lost', 'detached'] as const).map((outcome) =>
      locks.on(outcome, (event) => observer.onHold(event.heldMs / 1000, labels(event, outcome))),
    ),
    locks.on('storeError', ({ operation, error }) => {
      const { outcome = 'unknown' } = error as { outcome?: string };
      observer.onStoreError({ operation, outcome });
    }),
    locks.on('storeDown', () => observer.onStoreDown(true)),
    locks.on('storeUp', () => observer.onStoreDown(false)),
    locks.on('failedOpen', () => observer.onFailedOpen()),
    locks.on('entered', (event) => {
      if (event.isOverlap) observer.onOverlap({ lock: names.of(event) });
    }),
    locks.on('headerRefused', ({ reason }) => observer.onHeaderRefused({ reason })),
  ];
  observer.onStoreDown(false);
  return () => {
    for (const unsubscribe of unsubscribes) unsubscribe();
  };
}
