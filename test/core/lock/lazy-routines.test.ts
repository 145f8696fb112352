import { getLock, Locked, lock, runInTrace, traceHeaders } from '../../../src/core/index.ts';
import { gate } from '../../support/gate.ts';
import { coreTests } from '../../support/stores/set-up.ts';

const setUp = coreTests();

type Work<T> = () => Promise<T>;

/** As the queries of Knex, Mongoose and Prisma: the work begins when it is awaited. */
function query<T>(work: Work<T>): PromiseLike<T> {
  // biome-ignore lint/suspicious/noThenProperty: another library's promise
  return { then: (...listeners) => work().then(...listeners) };
}

/** As p-lazy. */
class LazyPromise<T> extends Promise<T> {
  #work: Work<T> | undefined;

  static of<T>(work: Work<T>): PromiseLike<T> {
    const lazy = new LazyPromise<T>(() => {});
    lazy.#work = work;
    return lazy;
  }

  // biome-ignore lint/suspicious/noThenProperty: it is a promise
  override then<A = T, B = never>(...listeners: Parameters<Promise<T>['then']>): Promise<A | B> {
    return (this.#work as Work<T>)().then(...listeners) as Promise<A | B>;
  }
}

class Orders {
  @Locked('key')
  ship(work: () => PromiseLike<unknown>): Promise<unknown> {
    return work() as Promise<unknown>;
  }
}

const lazies = [
  ['a query', query],
  ['a lazy promise', LazyPromise.of],
] as const;
const runs: [string, (routine: () => PromiseLike<unknown>) => Promise<unknown>][] = [
  ['lock.run', (routine) => lock.run('key', routine)],
  ['the run of getLock', (routine) => getLock('key').run(routine)],
  ['lock.runAll', (routine) => lock.runAll(['key', 'other'], routine)],
  ['a method with @Locked', (routine) => new Orders().ship(routine)],
];

describe.each(lazies)('%s that a routine returns, and that begins when it is awaited', (_, lazy) => {
  it.each(runs)('re-enters the lock of %s', async (_run, run) => {
    const { locks } = setUp();
    const entered = runInTrace(() => run(() => lazy(async () => (await lock.tryAcquire('key'))?.isHeld())), { locks });
    expect(await entered).toBe(true);
  });

  it.each(runs)('calls services in the branch of %s', async (_run, run) => {
    const { locks } = setUp();
    const [outer, inner] = await runInTrace(
      async () => [
        traceHeaders()['X-Trace-Branch'],
        await run(() => lazy(async () => traceHeaders()['X-Trace-Branch'])),
      ],
      { locks },
    );
    expect(inner).toMatch(new RegExp(`^${outer}/`));
  });

  it('acquires for its own branch, and so excludes one of a parallel branch', async () => {
    const { locks } = setUp();
    const over = gate();
    const grants = await runInTrace(
      async () => {
        const take = (key: string): Promise<boolean> =>
          lock.run(key, () =>
            lazy(async () => {
              const hold = await lock.tryAcquire('shared');
              if (hold !== null) await over;
              else over.open();
              return hold !== null;
            }),
          );
        const both = Promise.all([take('a'), take('b')]);
        setImmediate(() => over.open());
        return both;
      },
      { locks },
    );
    expect(grants.sort()).toEqual([false, true]);
  });
});
