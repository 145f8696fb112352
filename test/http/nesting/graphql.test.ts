import { createRequire } from 'node:module';
import { setImmediate as turn } from 'node:timers/promises';
import { ApolloServer } from '@apollo/server';
import { expressMiddleware } from '@as-integrations/express5';
import DataLoader from 'dataloader';
import type { Response } from 'express';
import { GraphQLError } from 'graphql';
import { LockError, lock } from 'reenlock';
import { gate } from '../../support/gate.ts';
import { express5 } from '../../support/http/express-app.ts';
import type { Middleware } from '../../support/http/frameworks.ts';
import type { ServerStage } from '../../support/http/server-stage.ts';
import { Balance, describeServices, type StartService } from '../../support/http/services.ts';
import { Account } from '../../support/nesting/account.ts';

interface Context {
  readonly res: Response;
}
type Resolver = (parent: unknown, args: { readonly id: string }, context: Context) => unknown;
type Resolvers = Readonly<Record<string, Resolver>>;

/** Its types would add those of browsers to all tests. */
const { createSchema, createYoga } = createRequire(__filename)('graphql-yoga') as {
  createSchema(definition: ReturnType<typeof definitionOf>): unknown;
  createYoga(options: { readonly schema: unknown; readonly logging: boolean }): Middleware;
};

/** The fields of `account` are resolved at once, as those of any object below the fields of a mutation. */
function definitionOf(resolvers: Resolvers) {
  const fields = Object.keys(resolvers).map((name) => `${name}(id: String): Int`);
  return {
    typeDefs: `
      type Query { balance: Int }
      type Mutation { account: Account! }
      type Account { ${fields} }
    `,
    resolvers: { Mutation: { account: () => ({}) }, Account: resolvers },
  };
}

function yoga(resolvers: Resolvers): Middleware[] {
  return [createYoga({ schema: createSchema(definitionOf(resolvers)), logging: false })];
}

async function apollo(resolvers: Resolvers): Promise<Middleware[]> {
  const server = new ApolloServer<Context>({ ...definitionOf(resolvers), stopOnTerminationSignals: false });
  await server.start();
  servers.push(server);
  return [express5.json(), expressMiddleware(server, { context: async ({ res }) => ({ res }) })];
}

const servers: ApolloServer<Context>[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

interface Reply {
  readonly data?: { readonly account: Readonly<Record<string, number | null>> };
  readonly errors?: readonly { readonly message: string; readonly extensions?: Readonly<Record<string, unknown>> }[];
}

/** Asks for fields of the account by one request. */
async function queried(
  service: ServerStage,
  path: string,
  fields: string,
): Promise<{ reply: Reply; headers: Headers }> {
  const response = await fetch(`http://127.0.0.1:${service.port}${path}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ query: `mutation { account { ${fields} } }` }),
  });
  return { reply: (await response.json()) as Reply, headers: response.headers };
}

/** Shows the code of a lock's error to the client, and when to try again. */
const shown =
  (resolve: Resolver): Resolver =>
  async (...args) => {
    try {
      return await resolve(...args);
    } catch (error) {
      if (!(error instanceof LockError)) throw error;
      args[2].res.set(error.headers);
      throw new GraphQLError(error.message, { extensions: { code: error.code } });
    }
  };

const kinds = [
  ['GraphQL Yoga', yoga],
  ['Apollo Server', apollo],
] as const;
const ways = [
  ['without a guard', '/plain'],
  ['under a guard of the same key', '/guarded'],
] as const;
const rows = kinds.flatMap(([name, serve]) => ways.map(([way, path]) => ({ name, serve, way, path })));

describeServices('Fields of one GraphQL query', (start: StartService) => {
  async function started(
    serve: (resolvers: Resolvers) => Middleware[] | Promise<Middleware[]>,
    resolvers: Resolvers,
    onStart: (stage: ServerStage) => void = () => {},
  ): Promise<ServerStage> {
    const [plain, guarded] = [await serve(resolvers), await serve(resolvers)];
    return start({ framework: express5 }, (app, stage) => {
      onStart(stage);
      app
        .mount('/plain', (sub) => sub.use(...plain))
        .mount('/guarded', (sub) => sub.use(express5.lockOn('account'), ...guarded));
    });
  }

  it.each(rows)('Two fields take turns, and nested calls enter, in $name $way', async ({ serve, path }) => {
    const account = new Account();
    const charge = () => lock.run('account', () => account.charge());
    const resolvers = { charge, nested: () => lock.run('account', charge) };
    const service = await started(serve, resolvers, (stage) => account.watch(stage));
    const { reply } = await queried(service, path, 'a: charge, b: nested');
    expect(Object.values(reply.data?.account ?? {}).sort()).toEqual([980, 990]);
    account.expectChargedInTurn();
  });

  it.each(rows)(
    'A field that does not wait is refused, with a code and `Retry-After`, in $name $way',
    async ({ serve, path }) => {
      const account = new Account();
      const resolvers = {
        charge: () => lock.run('account', () => account.charge()),
        busy: shown(async () => {
          await account.first;
          return lock.run('account', () => account.charge(), { waitMs: 0 }).finally(account.arrive);
        }),
      };
      const service = await started(serve, resolvers, (stage) => account.watch(stage));
      const { reply, headers } = await queried(service, path, 'charge, busy');
      expect(reply.data?.account).toEqual({ charge: 990, busy: null });
      expect(reply.errors).toMatchObject([{ extensions: { code: 'ERR_LOCK_TIMEOUT' } }]);
      expect(headers.get('retry-after')).toMatch(/^\d+$/);
    },
  );

  /** A field that loads within a lock of its own item. */
  const loading = (loader: DataLoader<string, number>, isInside: () => PromiseLike<unknown>): Resolver => {
    return (_, { id }) =>
      lock.run(`item ${id}`, async () => {
        await isInside();
        return loader.load(id);
      });
  };

  it.each(rows)('The batches of two DataLoaders take turns, in $name $way', async ({ serve, path }) => {
    const uses = new Balance(0);
    const both = gate();
    const batches: number[] = [];
    const loaderOf = () =>
      new DataLoader<string, number>(async (ids) => {
        batches.push(ids.length);
        if (batches.length === 2) both.open();
        return lock.run('account', async () => {
          await uses.add(ids.length, () => both.then(() => turn()));
          return ids.map((id) => id.length);
        });
      });
    const [one, two] = [loaderOf(), loaderOf()];
    let inside = 0;
    const all = gate();
    const isInside = () => {
      inside += 1;
      if (inside === 4) all.open();
      return all;
    };
    const service = await started(serve, { price: loading(one, isInside), stock: loading(two, isInside) });
    const fields = 'a: price(id: "1"), b: price(id: "22"), c: stock(id: "333"), d: stock(id: "4444")';
    const { reply } = await queried(service, path, fields);
    expect(reply.data?.account).toEqual({ a: 1, b: 2, c: 3, d: 4 });
    expect(batches).toEqual([2, 2]);
    expect(uses.value).toBe(4);
  });

  it.each(rows)(
    'A batch enters what the branch holds that began it, and not what its other callers hold, in $name $way',
    async ({ serve, path }) => {
      const loader = new DataLoader<string, number>(
        ([owner]) =>
          lock.run(`item ${owner}`, async () => {
            const other = await lock.run('item other', async () => 1, { waitMs: 0 }).catch(() => 0);
            return [other, other];
          }),
        { cache: false },
      );
      const firstLoads = gate();
      const otherHolds = gate();
      const resolvers: Resolvers = {
        first: () =>
          lock.run('item first', async () => {
            await otherHolds;
            firstLoads.open();
            return loader.load('first');
          }),
        other: () =>
          lock.run('item other', () => {
            otherHolds.open();
            return firstLoads.then(() => loader.load('other'));
          }),
      };
      const service = await started(serve, resolvers);
      const { reply } = await queried(service, path, 'first, other');
      expect(reply).toMatchObject({ data: { account: { first: 0, other: 0 } } });
    },
  );
});
