import { hasCode } from '../core/model/errors/by-code.ts';
import { LockConfigError } from '../core/model/errors/mistakes.ts';
import { type LockName, readName } from '../core/model/key.ts';
import { acquireRules } from '../core/model/options.ts';
import { callable, checkOptions, describe, type Rule, type Rules, wholeNumber } from '../core/model/validate.ts';
import { defaultLocks } from '../core/runtime/default-locks.ts';
import { forceReleaseLock } from '../core/runtime/inspect.ts';
import { type Locks, runtimeOf } from '../core/runtime/locks.ts';
import { checkFactoryCall } from '../http/misuse.ts';
import {
  type BoardCall,
  type BoardReply,
  boardReply,
  jsonReply,
  pageReplies,
  problemReply,
  type ReplyActions,
  streamReply,
} from './board-reply.ts';
import { Feed } from './feed.ts';
import { lockDetails } from './lock-details.ts';
import { OpenResponse } from './open-response.ts';
import { checkNotCrossSite, checkSameOrigin, RequestRefusal, readJson } from './request-checks.ts';
import type { BoardUser } from './viewer.ts';

/** The options of `lockBoard`. `R` is the framework's request or context. */
export interface LockBoardOptions<R> {
  /**
   * Returns the user of the request, or false if the request must not see the board. Called for each request, and
   * each minute while a page is open. An error that it throws goes through the framework's error handling.
   */
  readonly authorize: (request: R) => BoardUser | false | PromiseLike<BoardUser | false>;
  /** Whose locks to show. Default: the configured ones. */
  readonly locks?: Locks | undefined;
  /** Only the locks of these categories are shown and released; `''` is those without one. Default: all. */
  readonly categories?: readonly string[] | undefined;
  /** How many pages may be open at once in this process; one more gets a 503. Default 20. */
  readonly maxViewers?: number | undefined;
}

const categories: Rule = {
  expected: 'a list of categories',
  accepts: (value) => Array.isArray(value) && value.every((each) => each === '' || acquireRules.category.accepts(each)),
};

const rules: Rules<LockBoardOptions<never>> = {
  authorize: callable,
  locks: { expected: 'what `createLocks` or `configureLocks` returned', accepts: () => true },
  categories,
  maxViewers: wholeNumber(1, 1_000),
};

/** The requests of the page, apart from its files. */
const [streamPath, lockPath, releasePath] = ['/stream', '/lock', '/release'];
const methodsOf: Readonly<Record<string, readonly string[]>> = {
  [streamPath]: ['GET'],
  [lockPath]: ['GET', 'HEAD'],
  [releasePath]: ['POST'],
};
/** A lock's name in the store, from the page. */
const idPattern = /^[^\s{}]{1,256}$/;
const maxReason = 500;

/** The board on every framework: from a request to a reply. */
export class LockBoard<R> {
  readonly #options: Partial<LockBoardOptions<R>> & Pick<LockBoardOptions<R>, 'authorize'>;
  readonly #page: ReadonlyMap<string, BoardReply>;
  #feed: Feed | undefined;

  /** Throws `LockConfigError` for bad options. */
  constructor(options: LockBoardOptions<R>) {
    checkFactoryCall('lockBoard({ authorize })', options);
    this.#options = checkOptions(options, rules as Rules<LockBoardOptions<R>>, 'lockBoard', 'authorize');
    if (this.#options.locks !== undefined) runtimeOf(this.#options.locks);
    this.#page = pageReplies();
  }

  /** Decides about a request, calls one of `actions`, and returns its result. */
  async serve<T>(call: BoardCall, request: R, actions: ReplyActions<T>): Promise<T> {
    const [path = ''] = call.url.split('?', 1);
    const methods = methodsOf[path] ?? (this.#page.has(path) ? ['GET', 'HEAD'] : undefined);
    if (methods === undefined) return actions.pass();
    const response = new OpenResponse(call.req, call.res);
    let reply: BoardReply | undefined;
    try {
      reply = methods.includes(call.req.method ?? '')
        ? await this.#reply(path, call, request, response)
        : problemReply(405, `Expected ${methods.join(' or ')}`, { Allow: methods.join(', ') });
    } catch (error) {
      if (response.isOpen) return actions.fail(error);
      this.#feedNow().reportAuthorize('after its request had ended', error);
      return actions.leave();
    }
    return response.isOpen && reply !== undefined ? actions.send(reply) : actions.leave();
  }

  /** Undefined if the response is no longer open. Rejects with the error of `authorize`. */
  async #reply(path: string, call: BoardCall, request: R, response: OpenResponse): Promise<BoardReply | undefined> {
    try {
      if (path === releasePath) checkSameOrigin(call.req);
      if (path === streamPath || path === lockPath) checkNotCrossSite(call.req);
      const user = await this.#userOf(request);
      if (!response.isOpen) return undefined;
      if (user === undefined) return problemReply(403, 'You may not see this board');
      if (path === streamPath) return this.#open(user, request, response);
      if (path === lockPath) return await this.#lock(new URLSearchParams(call.url.slice(path.length)).get('id'));
      if (path === releasePath) {
        const body = await readJson(call);
        // If the operator was shown a failure, the lock must not be released.
        return response.isOpen ? await this.#release(user, body) : undefined;
      }
      return (path === '/' && redirect(call.originalUrl)) || this.#page.get(path);
    } catch (error) {
      if (error instanceof RequestRefusal) return problemReply(error.status, error.message);
      if (hasCode(error, 'ERR_LOCK_STORE')) return problemReply(503, 'The lock store does not reply');
      throw error;
    }
  }

  /** Nobody, unless `authorize` names somebody. */
  async #userOf(request: R): Promise<BoardUser | undefined> {
    const user: unknown = await this.#options.authorize(request);
    if (user === false || user === undefined || user === null) return undefined;
    const { name, mayForceRelease } = Object(user) as Partial<BoardUser>;
    if (typeof name === 'string' && name !== '') return { name, mayForceRelease: mayForceRelease === true };
    throw new LockConfigError(
      `Expected \`authorize\` to return \`{ name, mayForceRelease }\` or false, got ${describe(user)}`,
    );
  }

  #open(user: BoardUser, request: R, response: OpenResponse): BoardReply {
    const feed = this.#feedNow();
    if (feed.viewerCount >= (this.#options.maxViewers ?? 20)) {
      return problemReply(503, 'Too many pages of this board are open', { 'Retry-After': '10' });
    }
    const viewer = feed.open(user, () => this.#userOf(request));
    response.destroyAfter(viewer);
    return streamReply(viewer);
  }

  async #lock(id: string | null): Promise<BoardReply> {
    const name = this.#nameOf(id);
    return jsonReply(await lockDetails(this.#feedNow().runtime, name));
  }

  async #release(user: BoardUser, { id, fence, reason }: Readonly<Record<string, unknown>>): Promise<BoardReply> {
    if (!user.mayForceRelease) return problemReply(403, 'You may not release locks');
    const name = this.#nameOf(id);
    const why = typeof reason === 'string' ? reason.trim() : '';
    if (why === '' || why.length > maxReason) {
      throw new RequestRefusal(400, `Expected a reason of 1 to ${maxReason} characters`);
    }
    if (!Number.isSafeInteger(fence)) throw new RequestRefusal(400, 'Expected the fence of the lock');
    const { runtime } = this.#feedNow();
    const target = { fence: fence as number, by: user.name, reason: why };
    if (await forceReleaseLock(runtime, name, target)) return jsonReply({ released: true });
    return problemReply(409, 'The lock has changed hands since you looked. Nothing was released');
  }

  #nameOf(id: unknown): LockName {
    if (typeof id !== 'string' || !idPattern.test(id)) throw new RequestRefusal(400, 'Expected the id of a lock');
    if (!this.#accepts(id)) throw new RequestRefusal(404, 'This board does not show that lock');
    return { id, ...readName(id) };
  }

  readonly #accepts = (id: string): boolean => {
    const { categories } = this.#options;
    if (categories === undefined) return true;
    // A hashed name does not show its category.
    return !id.startsWith('%h') && categories.includes(readName(id).category ?? '');
  };

  /** The runtime of the `Locks` that are configured now. */
  #feedNow(): Feed {
    const runtime = runtimeOf(this.#options.locks ?? defaultLocks());
    if (this.#feed?.runtime !== runtime) this.#feed = new Feed(runtime, this.#accepts);
    return this.#feed;
  }
}

/** The page's links are relative: without the final slash they would lead past the board. */
function redirect(originalUrl: string): BoardReply | undefined {
  const [path = ''] = originalUrl.split('?', 1);
  if (path.endsWith('/')) return undefined;
  return boardReply(302, 'text/plain', '', { Location: `./${path.slice(path.lastIndexOf('/') + 1)}/` });
}
