/**
 * Where the application made a call, for an error that is made later: its own stack begins in a timer or a socket. The frames
 * are collected now, and turned into text only for such an error.
 */
export class CallSite {
  declare readonly stack?: string;

  /** `below` and what it called are left out. */
  constructor(below: object) {
    Error.captureStackTrace(this, below as () => void);
  }

  /** The frames from the application's call on, one a line, as an error's stack has them. */
  get frames(): readonly string[] {
    const frames = this.stack?.split('\n').filter((line) => line.startsWith('    at ')) ?? [];
    // Those of this package come first. In a bundle, its folder is not to be seen.
    const folder = /[^\s(]+[\\/](?=core[\\/]lock[\\/])/.exec(frames[0] ?? '')?.[0];
    const first = frames.findIndex((frame) => folder === undefined || !frame.includes(folder));
    return first < 0 ? frames : frames.slice(first);
  }
}
