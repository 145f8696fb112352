import { createTRPCClient, httpBatchLink, httpLink } from '@trpc/client';
import { initTRPC } from '@trpc/server';
import { createExpressMiddleware } from '@trpc/server/adapters/express';
import { LockError, lock, runInTrace, traceHeaders } from 'reenlock';
import { express5 } from '../../support/http/express-app.ts';
import type { ServerStage } from '../../support/http/server-stage.ts';
import { called, describeServices, type StartService } from '../../support/http/services.ts';
import { Account } from '../../support/nesting/account.ts';

const trpc = initTRPC.create({
  errorFormatter: ({ shape, error }) =>
    error.cause instanceof LockError ? { ...shape, data: { ...shape.data, lock: error.cause.code } } : shape,
});

function routerOf(account: Account) {
  const charge = (): Promise<number> => lock.run('account', () => account.charge());
  return trpc.router({
    ping: trpc.procedure.query(() => 'pong'),
    charge: trpc.procedure.mutation(charge),
    nested: trpc.procedure.mutation(() => lock.run('account', charge)),
    busy: trpc.procedure.mutation(async () => {
      await account.first;
      return lock.run('account', charge, { waitMs: 0 }).finally(account.arrive);
    }),
  });
}

/** Procedures on Express, without a guard of the key below `/plain`, and under one below `/guarded`. */
async function startTrpc(start: StartService, account: Account, traces: unknown[] = []): Promise<ServerStage> {
  const procedures = createExpressMiddleware({
    router: routerOf(account),
    responseMeta: ({ errors }) => {
      const refused = errors.map(({ cause }) => cause).find((cause) => cause instanceof LockError);
      return refused === undefined ? {} : { headers: refused.headers };
    },
  });
  return start({ framework: express5 }, (app, stage) => {
    account.watch(stage);
    const counted = express5.middleware((call, next) => {
      stage.note('request');
      traces.push(call.req.headers['x-trace-id']);
      return next();
    });
    app
      .mount('/plain', (sub) => sub.use(counted, procedures))
      .mount('/guarded', (sub) => sub.use(counted, express5.lockOn('account'), procedures));
  });
}

function clientOf({ port }: ServerStage, path: string, headers: () => Record<string, string> = () => ({})) {
  const replies: Response[] = [];
  const send = async (...args: [input: Parameters<typeof fetch>[0], init?: object]): Promise<Response> => {
    const reply = await fetch(...args);
    replies.push(reply);
    return reply;
  };
  const url = `http://127.0.0.1:${port}${path}`;
  const client = createTRPCClient<ReturnType<typeof routerOf>>({
    links: [httpBatchLink({ url, headers, fetch: send })],
  });
  return { client, replies };
}

describeServices('Procedures of one tRPC batch', (start) => {
  it.each([
    ['without a guard', '/plain'],
    ['under a guard of the same key', '/guarded'],
  ])('Two procedures of one batch take turns, and nested calls enter, %s', async (_, path) => {
    const account = new Account();
    const service = await startTrpc(start, account);
    const { client } = clientOf(service, path);
    const balances = await Promise.all([client.charge.mutate(), client.nested.mutate()]);
    expect(balances.sort()).toEqual([980, 990]);
    expect(service.count('request')).toBe(1);
    account.expectChargedInTurn();
  });

  it('Two procedures of one batch from a service that holds the key take turns within its hold', async () => {
    const account = new Account();
    const service = await startTrpc(start, account);
    const { client } = clientOf(service, '/plain', () => traceHeaders());
    const shop = await start({ framework: express5 }, (app) =>
      app.route('/order', express5.lockOn('account'), async (call) =>
        call.send(await Promise.all([client.charge.mutate(), client.charge.mutate()])),
      ),
    );
    expect((await called<number[]>(shop, '/order')).sort()).toEqual([980, 990]);
    expect(service.count('request')).toBe(1);
    account.expectChargedInTurn();
  });

  it('A procedure that does not wait is refused by its sibling, with a code and `Retry-After`', async () => {
    const account = new Account();
    const service = await startTrpc(start, account);
    const { client, replies } = clientOf(service, '/plain');
    const [charged, refused] = await Promise.allSettled([client.charge.mutate(), client.busy.mutate()]);
    expect(charged).toEqual({ status: 'fulfilled', value: 990 });
    expect(refused).toMatchObject({ reason: { data: { lock: 'ERR_LOCK_TIMEOUT' } } });
    expect(replies.map(({ headers }) => headers.get('retry-after'))).toEqual([expect.stringMatching(/^\d+$/)]);
  });

  it('Calls of two jobs in one batch are sent under the trace of the first, so a service needs a link without batches', async () => {
    const traces: unknown[] = [];
    const account = new Account();
    const service = await startTrpc(start, account, traces);
    const url = `http://127.0.0.1:${service.port}/plain`;
    const headers = () => traceHeaders();
    const sent = async (link: typeof httpBatchLink | typeof httpLink): Promise<unknown[]> => {
      const client = createTRPCClient<ReturnType<typeof routerOf>>({ links: [link({ url, headers })] });
      const job = (traceId: string) => runInTrace(() => client.ping.query(), { locks: service.locks, traceId });
      await Promise.all([job('one'), job('two')]);
      return traces.splice(0).sort();
    };
    expect(await sent(httpBatchLink)).toEqual(['one']);
    expect(await sent(httpLink)).toEqual(['one', 'two']);
  });
});
