import { lock, traceHeaders } from 'reenlock';
import { type Gate, gate } from '../../support/gate.ts';
import { bare } from '../../support/http/bare-app.ts';
import type { Handler } from '../../support/http/frameworks.ts';
import type { ServerStage } from '../../support/http/server-stage.ts';
import { Balance, called, describeServices, type StartService } from '../../support/http/services.ts';

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
  async chargedTwice(path: string): Promise<unknown> {
    const timeout = new AbortController();
    const first = called(this.stage, path, traceHeaders(), timeout.signal).catch((error: Error) => error.name);
    await this.stage.until('here');
    timeout.abort(new DOMException('The call took too long', 'TimeoutError'));
    const second = called(this.stage, path, traceHeaders());
    await this.stage.until('here', 2);
    this.slow.open();
    return [await first, await second];
  }
}

describeServices('A call that is made again after a timeout', (start) => {
  const calls = [
    ['a guard', '/guarded'],
    ['`run`', '/run'],
  ] as const;
  const callers = [
    ['that does not hold the key', '/order'],
    ['that holds the key', '/holding'],
  ] as const;
  const rows = calls.flatMap(([by, path]) => callers.map(([caller, order]) => ({ by, path, caller, order })));

  it.each(rows)(
    'The second attempt, with headers made anew, waits for the first one, for $by, from a service $caller',
    async ({ path, order }) => {
      const bank = new Bank();
      await bank.start(start);
      const handler: Handler = async (call) => call.send(await bank.chargedTwice(path));
      const shop = await start((app) => app.route('/order', handler).route('/holding', lockOn('account'), handler));
      expect(await called(shop, order)).toEqual(['TimeoutError', { charged: 10 }]);
      expect(bank.log).toEqual(alone);
      expect(bank.balance.value).toBe(980);
    },
  );
});
