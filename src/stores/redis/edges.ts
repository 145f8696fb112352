import type { EdgeStore, HoldRequest, WaitEdge, WaitReply } from '../../core/model/store.ts';
import { edgesOf, setEdge, wait } from './scripts.generated.ts';
import type { Item, RedisScripts } from './scripts.ts';

/** The edges that say which owner waits for which lock, on a Redis server: one key for each owner, in a slot of its own. */
export class RedisEdges implements EdgeStore {
  readonly #scripts: RedisScripts;
  readonly #prefix: string;
  readonly #waitArgs: (request: HoldRequest) => readonly Item[];

  /** `waitArgs` returns the arguments of wait.lua: the keys of the request's lock and its entry in the queue. */
  constructor(scripts: RedisScripts, prefix: string, waitArgs: (request: HoldRequest) => readonly Item[]) {
    this.#scripts = scripts;
    this.#prefix = prefix;
    this.#waitArgs = waitArgs;
  }

  set(owner: string, edge: WaitEdge, ttlMs: number): Promise<void> {
    return this.#scripts.run(setEdge, [this.#key(owner), JSON.stringify(edge), ttlMs], readNothing, 1);
  }

  clear(owner: string, edge: WaitEdge): Promise<void> {
    return this.set(owner, edge, 0);
  }

  of(owner: string): Promise<readonly WaitEdge[]> {
    const read = (reply: unknown): WaitEdge[] => (reply as string[]).map((text) => JSON.parse(text));
    return this.#scripts.run(edgesOf, [this.#key(owner)], read, 1);
  }

  wait(request: HoldRequest): Promise<WaitReply> {
    return this.#scripts.run(wait, this.#waitArgs(request), readWait);
  }

  /** An owner is a trace id or random: it has no braces. */
  #key(owner: string): string {
    return `${this.#prefix}{${owner}}:edges`;
  }
}

function readNothing(): void {}

function readWait(reply: unknown): WaitReply {
  const [since, ...holds] = reply as [Item | null, ...Item[]];
  return {
    sinceMs: since === null ? undefined : Number(since) / 1000,
    holds: Array.from({ length: holds.length / 3 }, (_, row) => {
      const [holdId, owner, fence] = holds.slice(3 * row, 3 * row + 3);
      return { holdId: String(holdId), owner: String(owner), fence: Number(fence) };
    }),
  };
}
