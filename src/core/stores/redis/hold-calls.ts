import type { HoldRequest } from '../../model/store.ts';

/** What is known of the calls about one hold. */
export interface HoldCalls {
  /** How many of its acquires may still reach the server. */
  openAcquires: number;
  /** Whether a release of it was answered: nothing more is expected of it. */
  isReleased: boolean;
}

/** So many holds are in a generation. */
const generationSize = 512;

/**
 * What is known of the calls about each hold, for as long as anything else knows its request. The newest two generations of
 * holds are in maps, and most are released before they leave these. Those that are not go to a `WeakMap`: an entry there costs
 * the garbage collector more than all else that is done with a hold's calls.
 */
export class CallsOfHolds {
  #newest = new Map<HoldRequest, HoldCalls>();
  #newer = new Map<HoldRequest, HoldCalls>();
  readonly #older = new WeakMap<HoldRequest, HoldCalls>();

  get(request: HoldRequest): HoldCalls | undefined {
    return this.#newest.get(request) ?? this.#newer.get(request) ?? this.#older.get(request);
  }

  /** The calls about a hold of which nothing is known so far. */
  begin(request: HoldRequest): HoldCalls {
    const calls = { openAcquires: 0, isReleased: false };
    this.#newest.set(request, calls);
    if (this.#newest.size === generationSize) this.#beginGeneration();
    return calls;
  }

  #beginGeneration(): void {
    for (const [request, calls] of this.#newer) {
      if (!calls.isReleased || calls.openAcquires > 0) this.#older.set(request, calls);
    }
    this.#newer = this.#newest;
    this.#newest = new Map();
  }
}
