import type { EdgeStore, HoldRequest, WaitEdge, WaitReply } from '../../core/model/store.ts';
import { keysOf } from './calls.ts';
import { readInspect } from './replies.ts';
import { edges, inspect } from './scripts.generated.ts';
import type { RedisScripts } from './scripts.ts';

/** The edges of a Redis store, which show which owner waits for which lock: one key for each owner, each in its own slot. */
export class RedisEdges implements EdgeStore {
  readonly #scripts: RedisScripts;
  readonly #prefix: string;

  constructor(scripts: RedisScripts, prefix: string) {
    this.#scripts = scripts;
    this.#prefix = prefix;
  }

  set(owner: string, edge: WaitEdge, ttlMs: number): Promise<void> {
    return this.#scripts.run(edges, [this.#key(owner)], [JSON.stringify(edge), ttlMs], readNothing);
  }

  clear(owner: string, edge: WaitEdge): Promise<void> {
    return this.set(owner, edge, 0);
  }

  of(owner: string): Promise<readonly WaitEdge[]> {
    const read = (reply: unknown): WaitEdge[] => (reply as string[]).map((text) => JSON.parse(text));
    return this.#scripts.run(edges, [this.#key(owner)], [], read);
  }

  wait(request: HoldRequest): Promise<WaitReply> {
    const keys = keysOf(this.#prefix, request.id);
    return this.#scripts.run(inspect, keys, [request.holdId], readWait);
  }

  /** An owner has no braces. */
  #key(owner: string): string {
    return `${this.#prefix}{${owner}}:edges`;
  }
}

function readNothing(): void {}

function readWait(reply: unknown): WaitReply {
  const { holds, waiters } = readInspect(reply);
  return {
    sinceMs: waiters[0]?.sinceMs,
    holds: holds.map(({ holdId, owner, fence }) => ({ holdId, owner, fence })),
  };
}
