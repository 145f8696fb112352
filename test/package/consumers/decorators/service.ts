// Valid under both kinds of decorators, and the same under both.
import assert from 'node:assert/strict';
import { createLocks, getLock, Locked, LockTimeoutError, MemoryStore, runInTrace } from 'reenlock';

const locks = createLocks({ store: new MemoryStore() });
const ById = Locked((id: string) => `order:${id}`);

class Orders {
  readonly prefix: string = 'order';
  static readonly table: string = 'orders';

  @Locked('report', { category: 'orders' })
  async constant(): Promise<number> {
    return getLock('report', { category: 'orders' }).holdCount();
  }

  @Locked((id) => `order:${id.trim()}`)
  async byArgument(id: string, work: () => Promise<number>): Promise<number> {
    return getLock(`order:${id}`).holdCount() + (await work());
  }

  @Locked(async function (id) {
    return `${this.prefix}:${id}`;
  })
  async byThis(id: number): Promise<number> {
    return getLock(`${this.prefix}:${id}`).holdCount();
  }

  @Locked(function () {
    return this.table;
  })
  static async ofClass(): Promise<number> {
    return getLock(Orders.table).holdCount();
  }

  @Locked((ids) => ids)
  async all(ids: readonly string[]): Promise<number[]> {
    return ids.map((id) => getLock(id).holdCount());
  }

  @ById
  async reused(id: string): Promise<number> {
    return getLock(`order:${id}`).holdCount();
  }

  @Locked((id) => id, { waitMs: 0 })
  async once(id: string): Promise<string> {
    return id;
  }
}

class SpecialOrders extends Orders {
  @Locked((id) => `order:${id}`)
  override async reused(id: string): Promise<number> {
    return getLock(`order:${id}`).holdCount() * 10 + (await super.reused(id));
  }
}

async function main(): Promise<void> {
  const orders = new Orders();
  await runInTrace(
    async () => {
      assert.equal(await orders.constant(), 1);
      // Re-enters below itself.
      assert.equal(await orders.byArgument('7', () => orders.byThis(7)), 3);
      assert.equal(await Orders.ofClass(), 1);
      assert.deepEqual(await orders.all(['b', 'a', 'b']), [1, 1, 1]);
      assert.equal(await orders.reused('7'), 1);
      assert.equal(await new SpecialOrders().reused('7'), 12);
      await assert.rejects(
        getLock('busy').run(() => runInTrace(() => orders.once('busy'), { traceId: 'another' })),
        LockTimeoutError,
      );
    },
    { locks },
  );
  assert.deepEqual([Orders.prototype.byArgument.name, Orders.prototype.byArgument.length], ['byArgument', 2]);
  assert.deepEqual(Object.keys(Orders.prototype), []);
  await locks.close();
  console.log('ok');
}

void main();
