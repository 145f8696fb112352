import type { MaybePromise } from './maybe-promise.ts';

/**
 * Makes a call of the public API: the application's line is above it on the stack. What `call` throws becomes a rejection, without
 * the extra promise of an async function.
 */
export function publicCall<T>(call: () => MaybePromise<T>): Promise<T> {
  try {
    return Promise.resolve(call());
  } catch (error) {
    return Promise.reject(error);
  }
}

/** A frame of this package, the application's line, and its caller. Each more would cost every acquire some 0.4 µs. */
const maxFrames = 3;

/**
 * Where the application made a call, for an error that is created later, with a stack that begins in a timer or a socket. The
 * frames are collected now, and turned into text only for such an error.
 */
export class CallSite {
  declare readonly stack?: string;

  /** Leaves out `below` and its callees. Default: `publicCall`, and few frames, since each acquire collects them. */
  constructor(below?: object) {
    const { stackTraceLimit } = Error;
    const isShort = below === undefined && stackTraceLimit > maxFrames && isLimitWritable();
    if (isShort) Error.stackTraceLimit = maxFrames;
    Error.captureStackTrace(this, (below ?? publicCall) as () => void);
    if (isShort) Error.stackTraceLimit = stackTraceLimit;
  }

  /** The frames from the application's call on, in the format of an error's stack. */
  get frames(): readonly string[] {
    const frames = this.stack?.split('\n').filter((line) => line.startsWith('    at ')) ?? [];
    // The first frames are of this package. In a bundle, its folder can't be recognized.
    const folder = /[^\s(]+[\\/](?=(core|http)[\\/])/.exec(frames[0] ?? '')?.[0];
    const first = frames.findIndex((frame) => folder === undefined || !frame.includes(folder));
    return first < 0 ? frames : frames.slice(first);
  }
}

/**
 * Each costs a busy process some 30 µs. One for each acquire would be a quarter of the processor time of a process that does nothing
 * else, and would delay a request that comes with hundreds of others.
 */
const perMs = 0.1;
const maxAtOnce = 20;

/** Collects the call sites of acquires: of `perMs` in the long run, and of no more than `maxAtOnce` of those made together. */
export class CallSites {
  #atMs = 0;
  #left = maxAtOnce;

  take(monoMs: number): CallSite | undefined {
    this.#left = Math.min(maxAtOnce, this.#left + (monoMs - this.#atMs) * perMs);
    this.#atMs = monoMs;
    if (this.#left < 1) return undefined;
    this.#left -= 1;
    return new CallSite();
  }
}

/** Frozen intrinsics make it read-only. */
function isLimitWritable(): boolean {
  return Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit')?.writable === true;
}
