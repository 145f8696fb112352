import { type Gate, gate } from '../gate.ts';
import type { ServerStage } from '../http/server-stage.ts';
import { Balance } from '../http/services.ts';

/** An account that two calls charge at once: the first one to be in works until the other one waits for it, or is in as well. */
export class Account {
  readonly balance: Balance = new Balance(1_000);
  readonly log: string[] = [];
  /** Opens when the first call is in. */
  readonly first: Gate = gate();
  readonly #both: Gate = gate();
  #arrived = 0;

  /** Learns who waits for a lock of a service. */
  watch({ locks }: ServerStage): void {
    locks.on('waiting', this.arrive);
  }

  /** Called when a call is in, or waits; by a test also when it was refused. */
  readonly arrive = (): void => {
    this.#arrived += 1;
    if (this.#arrived === 2) this.#both.open();
  };

  readonly charge = async (amount = 10): Promise<number> => {
    this.log.push('enters');
    this.first.open();
    this.arrive();
    await this.balance.add(-amount, () => this.#both);
    this.log.push('leaves');
    return this.balance.value;
  };

  /** Asserts that both calls charged it, one after the other. */
  expectChargedInTurn(): void {
    expect(this.log).toEqual(['enters', 'leaves', 'enters', 'leaves']);
    expect(this.balance.value).toBe(980);
  }
}
