/** The two servers of each process: behind the lock, and behind one that lets everybody in. */
export const variants = ['locked', 'open'] as const;
export type Variant = (typeof variants)[number];

/** What a request begins to do. */
export type Doing = 'wait' | 'hold' | 'orders' | 'inventory' | 'enter' | 'payments' | 'leave';

/** Something that happened to a request, told by the process that served it. */
export interface Moment {
  readonly variant: Variant;
  readonly traceId: string;
  readonly doing: Doing;
  /** How many holds the request had on its order. */
  readonly holds: number;
  readonly atMs: number;
}
