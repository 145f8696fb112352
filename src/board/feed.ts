import { outsideRequests } from '../core/base/clock.ts';
import { guarded } from '../core/base/safely.ts';
import type { Runtime } from '../core/runtime/runtime.ts';
import { LockScanner } from './lock-scanner.ts';
import { Loop } from './loop.ts';
import { type BoardUser, Viewer } from './viewer.ts';

/** How often changes are sent to viewers. */
const flushMs = 250;
/** After this time a viewer gets a message in any case, which shows that its connection works. */
const quietMs = 10_000;
/** A viewer that reads nothing for this long is dropped. */
const maxStallMs = 60_000;
const authorizeMs = 60_000;
const maxRows = 5_000;

/** All open pages of a board, fed by one scanner that works while there is one. */
export class Feed {
  readonly runtime: Runtime;
  readonly #accepts: (id: string) => boolean;
  readonly #viewers = new Set<Viewer>();
  #scanner: LockScanner | undefined;
  /** Sends changes; runs while there is a viewer. */
  #flushes: Loop | undefined;

  constructor(runtime: Runtime, accepts: (id: string) => boolean) {
    this.runtime = runtime;
    this.#accepts = accepts;
  }

  get viewerCount(): number {
    return this.#viewers.size;
  }

  /** A stream for one page. `authorize` is called each minute; when it returns nobody, or fails, the stream ends. */
  open(user: BoardUser, authorize: () => Promise<BoardUser | undefined>): Viewer {
    const { clock } = this.runtime;
    this.#scanner ??= new LockScanner(this.runtime, this.#accepts, maxRows, (id) => {
      for (const viewer of this.#viewers) viewer.changed(id);
    });
    const viewer = new Viewer(user, this.#scanner, () => clock.now().monoMs);
    this.#viewers.add(viewer);
    this.#flushes ??= outsideRequests(() => new Loop(clock, async () => this.#flush()));
    const check = async (): Promise<number> => {
      await this.#recheck(viewer, authorize);
      return authorizeMs;
    };
    // In the context of its request, which `authorize` may need.
    const checks = new Loop(clock, check, authorizeMs);
    const onClose = guarded(() => {
      checks.stop();
      this.#close(viewer);
    });
    viewer.once('close', onClose);
    return viewer;
  }

  /** Reports that `authorize` has failed when no response can. */
  reportAuthorize(when: string, cause: unknown): void {
    const message = `The \`authorize\` of a board failed ${when}`;
    this.runtime.events.emit('warning', { code: 'LOCK_BOARD_AUTHORIZE', message, cause });
  }

  #flush(): number {
    for (const viewer of this.#viewers) {
      if (this.runtime.acquires.isClosed) viewer.leave('closing');
      else if (viewer.stalledMs > maxStallMs) viewer.destroy();
      else viewer.flush(quietMs);
    }
    return flushMs;
  }

  #close(viewer: Viewer): void {
    this.#viewers.delete(viewer);
    if (this.#viewers.size > 0) return;
    this.#scanner?.stop();
    this.#flushes?.stop();
    this.#scanner = undefined;
    this.#flushes = undefined;
  }

  async #recheck(viewer: Viewer, authorize: () => Promise<BoardUser | undefined>): Promise<void> {
    const user = await authorize().catch((cause: unknown) => {
      this.reportAuthorize('for a page that is open: the page is closed', cause);
      return undefined;
    });
    if (viewer.destroyed) return;
    if (user === undefined) viewer.leave('denied');
    else viewer.setUser(user);
  }
}
