/**
 * Where the application made a call, for an error that is created later, with a stack that begins in a timer or a socket. The
 * frames are collected now, and turned into text only for such an error.
 */
export class CallSite {
  declare readonly stack?: string;

  /** Leaves out `below` and its callees. */
  constructor(below: object) {
    Error.captureStackTrace(this, below as () => void);
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
