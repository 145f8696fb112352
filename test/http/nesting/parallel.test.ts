import { setImmediate as turn } from 'node:timers/promises';
import { lock, traceHeaders } from 'reenlock';
import { type Gate, gate } from '../../support/gate.ts';
import { bare } from '../../support/http/bare-app.ts';
import type { Handler } from '../../support/http/frameworks.ts';
import { Balance, called, describeServices } from '../../support/http/services.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';

watchLeaks();

const { lockOn } = bare;

type Field = (args: { readonly amount: number }) => Promise<unknown>;

/** As DataLoader does: it collects the keys that are asked for in one turn, and loads them by one call in the context of the first. */
class Loader<T> {
  readonly #load: (keys: readonly string[]) => Promise<readonly T[]>;
  #batch: { readonly keys: string[]; readonly loaded: Promise<readonly T[]> } | undefined;

  constructor(load: (keys: readonly string[]) => Promise<readonly T[]>) {
    this.#load = load;
  }

  async load(key: string): Promise<T> {
    if (this.#batch === undefined) {
      const keys: string[] = [];
      const loaded = new Promise<readonly T[]>((resolve, reject) => {
        setImmediate(() => {
          this.#batch = undefined;
          this.#load(keys).then(resolve, reject);
        });
      });
      this.#batch = { keys, loaded };
    }
    const { keys, loaded } = this.#batch;
    const at = keys.push(key) - 1;
    return (await loaded)[at] as T;
  }
}

/** Runs the fields of a query at once, as GraphQL does. */
async function resolved(fields: Record<string, Field>, amount: number): Promise<Record<string, unknown>> {
  const entries = Object.entries(fields).map(async ([name, resolve]) => [name, await resolve({ amount })] as const);
  return Object.fromEntries(await Promise.all(entries));
}

describeServices('Work that one request does at once', (start) => {
  const ways = [
    ['without a guard', '/plain'],
    ['under a guard of the same key', '/guarded'],
  ] as const;

  /** Calls a handler in both of these ways. */
  async function answerOf<T>(path: string, handler: Handler): Promise<T> {
    const service = await start((app) => app.route('/plain', handler).route('/guarded', lockOn('k'), handler));
    return called<T>(service, path);
  }

  it.each(ways)('Ten calls of `run` at once lose no increment, %s', async (_, path) => {
    const count = new Balance(0);
    const fences = await answerOf(path, async (call) => {
      const add = ({ fence }: { fence: number }) => count.add(1, turn).then(() => fence);
      call.send(await Promise.all(Array.from({ length: 10 }, () => lock.run('k', add))));
    });
    expect(count.value).toBe(10);
    expect(fences).toHaveLength(10);
  });

  it.each(ways)('Two procedures of one batch lose no update, %s', async (_, path) => {
    const cart = new Balance(0);
    const procedures = {
      add: (amount: number) => lock.run('k', () => cart.add(amount, turn)),
      remove: (amount: number) => lock.run('k', () => cart.add(-amount, turn)),
    };
    const batch = [
      ['add', 5],
      ['remove', 2],
    ] as const;
    await answerOf(path, async (call) => {
      const results = await Promise.allSettled(batch.map(([name, amount]) => procedures[name](amount)));
      call.send(results.map(({ status }) => status));
    });
    expect(cart.value).toBe(3);
  });

  it.each(ways)('Two fields of one query that change the same thing lose no update, %s', async (_, path) => {
    const stock = new Balance(100);
    const reserve: Field = ({ amount }) =>
      lock.run('k', async () => {
        await stock.add(-amount, turn);
        // A resolver that calls another one is nested in it.
        return lock.run('k', async () => stock.value);
      });
    const answer = await answerOf(path, async (call) => call.send(await resolved({ a: reserve, b: reserve }, 7)));
    expect(Object.values(answer as object).sort()).toEqual([86, 93]);
  });

  it.each(ways)('Two fields of one query that call the same service lose no update, %s', async (_, path) => {
    const stock = new Balance(100);
    const both = gate();
    const service = await start((app, stage) => {
      stage.locks.on('waiting', both.open);
      app.route('/reserve', lockOn('k'), async (call) => {
        stage.note('in');
        if (stage.count('in') === 2) both.open();
        await stock.add(-7, () => both);
        call.send({ left: stock.value });
      });
    });
    const reserve: Field = () => called(service, '/reserve', traceHeaders());
    const answer = await answerOf(path, async (call) => call.send(await resolved({ a: reserve, b: reserve }, 7)));
    expect(stock.value).toBe(86);
    expect(
      Object.values(answer as object)
        .map(({ left }) => left)
        .sort(),
    ).toEqual([86, 93]);
  });

  it.each(ways)('The batches of a loader exclude each other, and one serves several branches, %s', async (_, path) => {
    const uses = new Balance(0);
    const [firstInside, secondBegun] = [gate(), gate()];
    const batches: (readonly string[])[] = [];
    const prices = new Loader(async (keys) => {
      batches.push(keys);
      if (batches.length === 2) secondBegun.open();
      return lock.run('k', async () => {
        firstInside.open();
        await uses.add(keys.length, () => secondBegun);
        return keys.map((key) => key.length);
      });
    });
    /** A field that asks once both fields of `together` are inside: only then does one batch serve them. */
    const field = (item: string, together: { inside: number; readonly all: Gate }): Field => {
      return () =>
        lock.run(`item ${item}`, async () => {
          together.inside += 1;
          if (together.inside === 2) together.all.open();
          await together.all;
          return prices.load(item);
        });
    };
    const [early, later] = [
      { inside: 0, all: gate() },
      { inside: 0, all: gate() },
    ];
    const late = (item: string): Field => {
      return (args) => firstInside.then(() => field(item, later)(args));
    };
    const fields = { a: field('one', early), b: field('three', early), c: late('late 1'), d: late('late 22') };
    const answer = await answerOf(path, async (call) => call.send(await resolved(fields, 1)));
    expect(answer).toEqual({ a: 3, b: 5, c: 6, d: 7 });
    expect(batches.map((keys) => keys.length)).toEqual([2, 2]);
    expect(uses.value).toBe(4);
  });

  it('A loader’s batch does not enter what another branch than its own holds, and its error names that', async () => {
    const loader = new Loader((keys) => lock.run('k', async () => keys, { waitMs: 20 }));
    const answer = await answerOf<{ first: string; second: string }>('/guarded', async (call) => {
      const failed = (error: Error): string => error.message;
      const first = loader.load('begins the batch').catch(failed);
      const second = lock.run('k', () => loader.load('is served by it').catch(failed));
      call.send({ first: await first, second: await second });
    });
    expect(answer.first).toContain('another branch of this request holds it');
    expect(answer.second).toBe(answer.first);
  });
});
