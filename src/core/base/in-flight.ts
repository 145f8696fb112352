/** Counts work that has begun and not ended, and says when none is left. */
export class InFlight {
  #count = 0;
  readonly #onIdle: (() => void)[] = [];

  get count(): number {
    return this.#count;
  }

  begin(): void {
    this.#count += 1;
  }

  end(): void {
    this.#count -= 1;
    if (this.#count === 0 && this.#onIdle.length > 0) for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /** Resolves when all work that has begun has ended. */
  async idle(): Promise<void> {
    if (this.#count > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }
}
