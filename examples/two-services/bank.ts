/** Somebody else's service: it gets no trace headers, since whoever has them may enter what the trace holds. */
export class Bank {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  async charge(order: string, cents: number): Promise<void> {
    const headers = { 'Content-Type': 'application/json' };
    const body = JSON.stringify({ order, cents });
    const response = await fetch(`${this.#url}/charges`, { method: 'POST', headers, body });
    if (!response.ok) throw new Error(`The bank answered ${response.status}`);
  }

  /** Whether an order was charged: for who was cut off before the answer. */
  async wasCharged(order: string): Promise<boolean> {
    const { status } = await fetch(`${this.#url}/charges/${encodeURIComponent(order)}`);
    return status === 200;
  }
}
