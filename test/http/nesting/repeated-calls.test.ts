import replyFrom from '@fastify/reply-from';
import axios from 'axios';
import axiosRetry from 'axios-retry';
import fastify from 'fastify';
import { lock, traceHeaders } from 'reenlock';
import { bare } from '../../support/http/bare-app.ts';
import type { Handler } from '../../support/http/frameworks.ts';
import type { ServerStage } from '../../support/http/server-stage.ts';
import { called, describeServices, type StartService } from '../../support/http/services.ts';
import { Account } from '../../support/nesting/account.ts';
import { TcpProxy } from '../../support/processes/tcp-proxy.ts';

const { lockOn } = bare;
const calls = [
  ['a guard', '/guarded'],
  ['`run`', '/run'],
] as const;
const callers = [
  ['that does not hold the key', '/order'],
  ['that holds the key', '/holding'],
] as const;
const rows = calls.flatMap(([by, path]) => callers.map(([caller, order]) => ({ by, path, caller, order })));

/** A service that charges the account, and notes the branch that each call was sent with. */
async function startBank(start: StartService, account: Account): Promise<{ bank: ServerStage; branches: unknown[] }> {
  const branches: unknown[] = [];
  const bank = await start((app, stage) => {
    account.watch(stage);
    app.use(
      bare.middleware((call, next) => {
        branches.push(call.req.headers['x-trace-branch']);
        return next();
      }),
    );
    app.route('/guarded', lockOn('account'), async (call) => call.send({ left: await account.charge() }));
    app.route('/run', async (call) => call.send({ left: await lock.run('account', () => account.charge()) }));
  });
  return { bank, branches };
}

/** A service whose requests call the bank, with and without a hold of the account. */
function startShop(start: StartService, handler: Handler): Promise<ServerStage> {
  return start((app) => app.route('/order', handler).route('/holding', lockOn('account'), handler));
}

/** Repeats a call that was given up, and waits for that reply for as long as it takes. */
const client = axios.create();
axiosRetry(client, {
  retries: 1,
  retryCondition: ({ code }) => code === 'ERR_CANCELED',
  onRetry: (_count, _error, config) => {
    delete config.signal;
  },
});

describeServices('A call that is made twice', (start) => {
  it.each(rows)(
    'The call that axios-retry repeats after the first one was given up waits for that, for $by, from a service $caller',
    async ({ path, order }) => {
      const account = new Account();
      const { bank, branches } = await startBank(start, account);
      const givenUp = new AbortController();
      void account.first.then(() => givenUp.abort());
      const shop = await startShop(start, async (call) => {
        const url = `http://127.0.0.1:${bank.port}${path}`;
        call.send((await client.get<object>(url, { headers: traceHeaders(), signal: givenUp.signal })).data);
      });
      expect(await called(shop, order)).toEqual({ left: 980 });
      expect(branches).toEqual([branches[0], branches[0]]);
      account.expectChargedInTurn();
    },
  );

  it.each(rows)(
    'The request that a proxy repeats waits for the first one, which lost its connection, for $by, from a service $caller',
    async ({ path, order }) => {
      const account = new Account();
      const { bank, branches } = await startBank(start, account);
      const network = await TcpProxy.start(bank.port, 'any');
      const proxy = fastify();
      proxy.register(replyFrom, { base: `http://127.0.0.1:${network.port}`, http: {} });
      proxy.get('/*', (_request, reply) => reply.from(undefined, { retriesCount: 1 }));
      const url = await proxy.listen({ host: '127.0.0.1', port: 0 });
      void account.first.then(() => network.cut());
      try {
        const shop = await startShop(start, async (call) =>
          call.send(await (await fetch(`${url}${path}`, { headers: traceHeaders() })).json()),
        );
        expect(await called(shop, order)).toEqual({ left: 980 });
        expect(branches).toEqual([branches[0], branches[0]]);
        account.expectChargedInTurn();
      } finally {
        await proxy.close();
        await network.stop();
      }
    },
  );
});
