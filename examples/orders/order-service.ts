import { getLock } from 'reenlock';
import type { Database } from './database.ts';
import type { InventoryService } from './inventory-service.ts';
import { orderKey } from './key.ts';
import type { PaymentService } from './payment-service.ts';

export interface OrderView {
  readonly id: string;
  readonly shipped: number;
  readonly stock: number;
  readonly charged: number;
  readonly settled: number;
}

export interface Shipment {
  /** How many units were shipped by now, this one included. */
  readonly shipped: number;
  readonly stock: number;
  readonly charged: number;
}

export class OrderService {
  readonly #database: Database;
  readonly #inventory: InventoryService;
  readonly #payments: PaymentService;

  constructor(database: Database, inventory: InventoryService, payments: PaymentService) {
    this.#database = database;
    this.#inventory = inventory;
    this.#payments = payments;
  }

  /**
   * Ships one unit and charges it. Each service locks the order for itself, so that each is right on its own; called
   * from here they re-enter, at no cost, and nobody comes in between.
   */
  ship(id: string): Promise<Shipment> {
    return getLock(orderKey(id)).run(async () => {
      const shipped = (await this.#shipped(id)) + 1;
      const stock = await this.#inventory.take(id);
      const charged = await this.#payments.charge(id);
      await this.#database.write(`shipped:${id}`, shipped);
      return { shipped, stock, charged };
    });
  }

  /** The order as it is between two shipments, never in the midst of one. */
  view(id: string): Promise<OrderView> {
    return getLock(orderKey(id)).run(async () => ({
      id,
      shipped: await this.#shipped(id),
      stock: await this.#inventory.stock(id),
      charged: await this.#payments.charged(id),
      settled: await this.#payments.settled(id),
    }));
  }

  async #shipped(id: string): Promise<number> {
    return (await this.#database.read(`shipped:${id}`)) ?? 0;
  }
}
