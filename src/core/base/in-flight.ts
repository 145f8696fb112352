/** Counts work that has begun and not ended. */
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

  /** Resolves when no work is left. */
  async idle(): Promise<void> {
    if (this.#count > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }
}
