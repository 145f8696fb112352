import { setImmediate as turn } from 'node:timers/promises';
import { lock, traceHeaders } from 'reenlock';
import { gate } from '../../support/gate.ts';
import { bare } from '../../support/http/bare-app.ts';
import type { Handler } from '../../support/http/frameworks.ts';
import { Balance, called, describeServices } from '../../support/http/services.ts';

const { lockOn } = bare;

type Field = (args: { readonly amount: number }) => Promise<unknown>;

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
});
