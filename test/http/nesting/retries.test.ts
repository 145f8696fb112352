import { lock, traceHeaders } from 'reenlock';
import { type Gate, gate } from '../../support/gate.ts';
import { bare } from '../../support/http/bare-app.ts';
import type { Handler } from '../../support/http/frameworks.ts';
import type { ServerStage } from '../../support/http/server-stage.ts';
import { Balance, called, describeServices, type StartService } from '../../support/http/services.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';

watchLeaks();

const { lockOn } = bare;
const alone = ['enters', 'leaves', 'enters', 'leaves'];

/** Takes 10 from a balance. `here` is noted when an attempt has the key, and when it waits for it. */
class Bank {
  readonly balance = new Balance(1_000);
  readonly slow: Gate = gate();
  readonly log: string[] = [];
  #stage: ServerStage | undefined;

  get stage(): ServerStage {
    return this.#stage as ServerStage;
  }

  watch(stage: ServerStage): void {
    this.#stage = stage;
    stage.locks.on('waiting', () => stage.note('here'));
  }

  readonly charge = async (): Promise<void> => {
    this.log.push('enters');
    this.stage.note('here');
    await this.balance.add(-10, () => this.slow);
    this.log.push('leaves');
  };

  async start(start: StartService): Promise<void> {
    await start((app, stage) => {
      this.watch(stage);
      app.route('/guarded', lockOn('account'), async (call) => {
        await this.charge();
        call.send({ charged: 10 });
      });
      app.route('/run', async (call) => {
        await lock.run('account', this.charge);
        call.send({ charged: 10 });
      });
    });
  }

  /** Charges, stops waiting for the reply, and charges again while the first attempt is at work. */
  async chargedTwice(path: string, headers: () => Record<string, string>): Promise<unknown> {
    const timeout = new AbortController();
    const first = called(this.stage, path, headers(), timeout.signal).catch((error: Error) => error.name);
    await this.stage.until('here');
    timeout.abort(new DOMException('The call took too long', 'TimeoutError'));
    const second = called(this.stage, path, headers());
    await this.stage.until('here', 2);
    this.slow.open();
    return [await first, await second];
  }
}

describeServices('A call that is made again after a timeout', (start) => {
  const retries: [string, () => () => Record<string, string>][] = [
    ['headers made anew', () => () => traceHeaders()],
    [
      'the very same headers',
      () => {
        const headers = traceHeaders();
        return () => headers;
      },
    ],
  ];
  const calls = [
    ['a guard', '/guarded'],
    ['`run`', '/run'],
  ] as const;
  const callers = [
    ['that does not hold the key', '/order'],
    ['that holds the key', '/holding'],
  ] as const;
  const rows = retries.flatMap(([sent, headers]) =>
    calls.flatMap(([by, path]) => callers.map(([caller, order]) => ({ sent, headers, by, path, caller, order }))),
  );

  it.each(rows)(
    'The second attempt waits for the first one, with $sent, for $by, from a service $caller',
    async ({ headers, path, order }) => {
      const bank = new Bank();
      await bank.start(start);
      const handler: Handler = async (call) => call.send(await bank.chargedTwice(path, headers()));
      const shop = await start((app) => app.route('/order', handler).route('/holding', lockOn('account'), handler));
      expect(await called(shop, order)).toEqual(['TimeoutError', { charged: 10 }]);
      expect(bank.log).toEqual(alone);
      expect(bank.balance.value).toBe(980);
    },
  );

  it.each(calls)('Attempts that a proxy repeats wait for each other, for %s', async (_, path) => {
    const bank = new Bank();
    await bank.start(start);
    const proxy = await start({ bare: true }, (app) =>
      app.route('/charge', async (call) => {
        const all = Object.entries(call.req.headers) as [string, string][];
        const passedOn = Object.fromEntries(all.filter(([name]) => name.startsWith('x-trace')));
        call.send(await bank.chargedTwice(path, () => passedOn));
      }),
    );
    const shop = await start((app) =>
      app.route('/order', async (call) => call.send(await called(proxy, '/charge', traceHeaders()))),
    );
    expect(await called(shop, '/order')).toEqual(['TimeoutError', { charged: 10 }]);
    expect(bank.log).toEqual(alone);
    expect(bank.balance.value).toBe(980);
  });
});

describeServices('Work that is done again in one process after a timeout', (start) => {
  it.each([
    ['without a guard', '/order'],
    ['under a guard of the same key', '/guarded'],
  ])('The second `run` waits for the first one, which lost a race with a timer, %s', async (_, path) => {
    const bank = new Bank();
    const handler: Handler = async (call) => {
      const first = lock.run('account', bank.charge);
      const timeout = bank.stage.until('here').then(() => 'timeout');
      const won = await Promise.race([first, timeout]);
      const second = lock.run('account', bank.charge);
      await bank.stage.until('here', 2);
      bank.slow.open();
      await second;
      call.send({ won });
    };
    const shop = await start((app, stage) => {
      bank.watch(stage);
      app.route('/order', handler).route('/guarded', lockOn('account'), handler);
    });
    expect(await called(shop, path)).toEqual({ won: 'timeout' });
    expect(bank.log).toEqual(alone);
    expect(bank.balance.value).toBe(980);
  });
});
