import {
  type AcquireOptions,
  getLock,
  LockConfigError,
  Locked,
  LockKeyError,
  LockTimeoutError,
  lock,
  type MethodKey,
} from '../../../src/core/index.ts';
import { coreTests, outcomeOf, type Setup } from '../../support/stores/set-up.ts';

const setUp = coreTests();

/** The holds of the calling scope on keys, in their order. */
function counts(...keys: string[]): number[] {
  return keys.map((key) => getLock(key).holdCount());
}

/** Whether another trace could have the key now. */
async function isFree(setup: Setup, key: string, options?: AcquireOptions): Promise<boolean> {
  const hold = await setup.job('another').in(() => lock.tryAcquire(key, options));
  await hold?.release();
  return hold !== null;
}

describe('A locked method', () => {
  class Orders {
    readonly prefix = 'order';
    static readonly table = 'orders';

    @Locked('report')
    async constant(): Promise<number[]> {
      return counts('report');
    }

    @Locked((id) => id)
    async byArgument(id: string, _reason?: string): Promise<number[]> {
      return counts(id);
    }

    @Locked(async (_first, second) => second)
    async byLater(_first: string, second: bigint): Promise<number[]> {
      return counts(String(second));
    }

    @Locked(function (id) {
      return `${this.prefix}:${id}`;
    })
    async byThis(id: number): Promise<[string, number[]]> {
      return [this.prefix, counts(`order:${id}`)];
    }

    @Locked(function () {
      return this.table;
    })
    static async ofClass(): Promise<number[]> {
      return [Orders.table === 'orders', Orders.#own === undefined].map(Number).concat(counts('orders'));
    }

    static #own: undefined;

    @Locked((id) => id)
    async #hidden(id: string): Promise<number[]> {
      return counts(id);
    }

    callHidden(id: string): Promise<number[]> {
      return this.#hidden(id);
    }

    @Locked((ids) => ids)
    async all(_ids: readonly (string | undefined)[], inner: () => unknown = () => {}): Promise<unknown> {
      return inner();
    }
  }

  it.each<[string, (orders: Orders) => Promise<unknown>, unknown]>([
    ['a constant', (orders) => orders.constant(), [1]],
    ['an argument', (orders) => orders.byArgument('a'), [1]],
    ['a promise of an argument', (orders) => orders.byLater('a', 7n), [1]],
    ['a property of `this`', (orders) => orders.byThis(7), ['order', [1]]],
    ['a static property of its class', () => Orders.ofClass(), [1, 1, 1]],
    ['an argument of a private method', (orders) => orders.callHidden('a'), [1]],
    ['a list', (orders) => orders.all(['b', 'a'], () => counts('a', 'b')), [1, 1]],
  ])('A locked method runs while the key is held that is %s, and releases it', async (_, call, value) => {
    const { job, store } = setUp();
    await job().in(async () => expect(await call(new Orders())).toEqual(value));
    expect(await store.remains()).toEqual([]);
  });

  it('A locked method rejects, and never throws, with what its key function throws', async () => {
    const error = new Error('no key');
    const keys: MethodKey<unknown, []>[] = [
      () => {
        throw error;
      },
      () => Promise.reject(error),
    ];
    const { job, store } = setUp();
    for (const key of keys) {
      class Failing {
        @Locked(key)
        async method(): Promise<void> {}
      }
      const outcome = outcomeOf(job().in(() => new Failing().method()));
      await outcome.settled;
      expect(outcome.error).toBe(error);
    }
    expect(store.calls).toEqual([]);
  });

  it('A locked method passes its object, its arguments and its result through unchanged', async () => {
    const result = { of: 'the method' };
    const seen: unknown[] = [];
    class Recorder {
      @Locked(function (...args) {
        seen.push(this, ...args);
        return 'a';
      })
      async method(...args: unknown[]): Promise<unknown> {
        seen.push(this, ...args);
        return result;
      }
    }
    const { job } = setUp();
    const recorder = new Recorder();
    const args = [{}, undefined, Symbol('b')];
    expect(await job().in(() => recorder.method(...args))).toBe(result);
    expect(seen).toHaveLength(8);
    for (const [index, value] of [recorder, ...args, recorder, ...args].entries()) expect(seen[index]).toBe(value);
  });

  it('A locked method holds the key in its category, with its other options', async () => {
    const setup = setUp();
    const ofOrders = async (key: string) => [await isFree(setup, key, { category: 'orders' })];
    class Category {
      @Locked('a', { category: 'orders' })
      async one(): Promise<boolean[]> {
        return [await isFree(setup, 'a'), await isFree(setup, 'a', { category: 'orders' })];
      }

      @Locked(() => ['a', 'b'], { category: 'orders' })
      async list(): Promise<boolean[]> {
        return [await isFree(setup, 'b'), ...(await ofOrders('a')), ...(await ofOrders('b'))];
      }

      @Locked(() => 'a', { category: 'orders', waitMs: 0 })
      async once(): Promise<void> {}
    }
    const { job } = setup;
    const category = new Category();
    expect(await job().in(() => category.one())).toEqual([true, false]);
    expect(await job().in(() => category.list())).toEqual([true, false, false]);
    await job().in(() =>
      lock.run('a', () => expect(job('another').in(() => category.once())).rejects.toThrow(LockTimeoutError), {
        category: 'orders',
      }),
    );
  });

  it('A locked method is inherited, overridden and called by `super` like any other', async () => {
    class Special extends Orders {
      override readonly prefix = 'order';

      @Locked((id) => id)
      override async byArgument(id: string): Promise<number[]> {
        return [...counts(id), ...(await super.byArgument(id)), ...counts(id)];
      }
    }
    const { job, store } = setUp();
    await job().in(async () => {
      expect(await new Special().byThis(7)).toEqual(['order', [1]]);
      expect(await new Special().byArgument('a')).toEqual([1, 2, 1]);
      expect(await Special.ofClass()).toEqual([1, 1, 1]);
    });
    expect(await store.remains()).toEqual([]);
  });

  it('A method may be locked more than once, the upper decorator first', async () => {
    const setup = setUp();
    class Twice {
      @Locked('outer')
      @Locked('inner')
      async method(): Promise<number[]> {
        return counts('outer', 'inner');
      }
    }
    const granted = setup.events('granted');
    expect(await setup.job().in(() => new Twice().method())).toEqual([1, 1]);
    expect(granted.map(({ key }) => key)).toEqual(['outer', 'inner']);
  });

  it('A locked method keeps its name, its length, its place and what other decorators have put on it', () => {
    const symbol = Symbol('name');
    const marked = <M extends object>(method: M): M => Object.assign(method, { mark: 'below' });
    class Named {
      @Locked('a')
      async first(_a: string, _b: number): Promise<void> {}

      @Locked('a')
      async [symbol](_a: string, ..._rest: string[]): Promise<void> {}

      @Locked('a')
      static async second(): Promise<void> {}

      @Locked('a')
      @marked
      async third(): Promise<void> {}
    }
    const { first, [symbol]: bySymbol, third } = Named.prototype;
    expect([first.name, bySymbol.name, Named.second.name]).toEqual(['first', '[name]', 'second']);
    expect([first.length, bySymbol.length, Named.second.length]).toEqual([2, 1, 0]);
    expect(Object.keys(Named.prototype)).toEqual([]);
    expect(third).toHaveProperty('mark', 'below');
    expect(third).toBeInstanceOf(Function);
  });

  it('A locked method returns a promise if JavaScript decorates a synchronous one', async () => {
    const { job } = setUp();
    class Plain {
      method(): string {
        return `held ${counts('a')}`;
      }
    }
    const decorate = Locked('a') as unknown as LegacyDecorator;
    const { value, ...place } = decorate(Plain.prototype, 'method', descriptorOf(Plain.prototype, 'method'));
    expect(place).toEqual({ configurable: true, enumerable: false, writable: true });
    const answer: unknown = job().in(() => Reflect.apply(value, new Plain(), []));
    expect(answer).toBeInstanceOf(Promise);
    expect(await answer).toBe('held 1');
  });
});

type LegacyDecorator = (target: object, name?: string, descriptor?: unknown) => PropertyDescriptor;

function descriptorOf(target: object, name: string): PropertyDescriptor {
  return Object.getOwnPropertyDescriptor(target, name)!;
}

describe('@Locked, when the class is defined', () => {
  const apply = Locked('a') as unknown as LegacyDecorator;
  class Legacy {
    method(): void {}
    get getter(): number {
      return 1;
    }
    set setter(_value: number) {}
    *generator(): Generator<number> {
      yield 1;
    }
    async *asyncGenerator(): AsyncGenerator<number> {
      yield 1;
    }
  }

  it.each<[string, () => unknown]>([
    ['the getter `x`', () => define('getter')],
    ['the setter `x`', () => define('setter')],
    ['the field `x`', () => define('field')],
    ['the accessor `x`', () => define('accessor')],
    ['the class `C`', () => define('class')],
    ['the generator `x`', () => define('generator')],
    ['the getter or setter `getter`', () => apply(Legacy, 'getter', descriptorOf(Legacy.prototype, 'getter'))],
    ['the getter or setter `setter`', () => apply(Legacy, 'setter', descriptorOf(Legacy.prototype, 'setter'))],
    ['the generator `generator`', () => apply(Legacy, 'generator', descriptorOf(Legacy.prototype, 'generator'))],
    [
      'the generator `asyncGenerator`',
      () => apply(Legacy, 'asyncGenerator', descriptorOf(Legacy.prototype, 'asyncGenerator')),
    ],
    ['the field `field`', () => apply(Legacy, 'field', undefined)],
    ['the field `field`', () => apply(Legacy, 'field', { initializer: () => 1 })],
    ['the parameter `method`', () => apply(Legacy, 'method', 0)],
    ['the class', () => apply(Legacy)],
  ])('@Locked refuses %s', (what, decorate) => {
    expect(decorate).toThrow(
      new LockConfigError(`Expected @Locked to decorate a method that returns a promise, got ${what}`),
    );
    expect(decorate).toThrow(LockConfigError);
  });

  it.each(['/orders/:id', '${id}', '{id}'])('@Locked refuses a constant key that looks like a template: %s', (key) => {
    expect(() => Locked(key)).toThrow(LockConfigError);
    expect(() => Locked(key)).toThrow(
      /^Expected the key of @Locked to be a function of the method's arguments.* looks like a template.*`@Locked\(/,
    );
  });

  it('@Locked refuses to decorate without being called', () => {
    const bare = Locked as unknown as (...args: unknown[]) => unknown;
    const uncalled = new LockConfigError(
      'Expected @Locked to be called with a key. Write `@Locked((id: string) => id)`',
    );
    expect(() => bare(() => {}, { kind: 'method', name: 'x' })).toThrow(uncalled);
    expect(() => bare(Legacy.prototype, 'method', descriptorOf(Legacy.prototype, 'method'))).toThrow(uncalled);
    expect(() => bare(Legacy, 'method', undefined)).toThrow(uncalled);
  });

  it('@Locked refuses an empty constant key', () => {
    expect(() => Locked('')).toThrow(LockKeyError);
  });

  it.each([
    [undefined, '`undefined` (undefined)'],
    [null, '`null` (null)'],
    [42, '`42` (number)'],
    [{}, 'a value of type object'],
    [['a'], 'a value of type array'],
  ])('@Locked refuses %p as the key', (key, got) => {
    expect(() => Locked(key as unknown as string)).toThrow(
      new LockConfigError(`Expected the key of @Locked to be a string or a function, got ${got}`),
    );
  });

  it.each([
    [{ waitMs: -1 }, /^Expected `waitMs` to be a whole number of milliseconds/],
    [{ category: '' }, /^Expected `category` to be a string of 1 to 256 characters/],
    [{ reentrant: 'nobody' }, /^Expected `reentrant` to be 'trace' or 'request' or false, got `nobody` \(string\)$/],
    [{ timeout: 5 }, /^Expected the options of Locked to be among .*, got `timeout`. Did you mean `waitMs`\?$/],
    [{ leaseMs: 2_000, maxHoldMs: 1_000 }, /^Expected `leaseMs` to be `maxHoldMs` \(1000\) at most/],
    ['orders', /^Expected the options of Locked to be an object/],
  ])('@Locked refuses the options %j', (options, message) => {
    for (const key of ['a', () => 'a']) {
      expect(() => Locked(key, options as AcquireOptions)).toThrow(LockConfigError);
      expect(() => Locked(key, options as AcquireOptions)).toThrow(message);
    }
  });

  it('@Locked does not see later changes of the options object', async () => {
    const setup = setUp();
    const options: { category: string } = { category: 'orders' };
    class Kept {
      @Locked(() => 'a', options)
      async method(): Promise<boolean> {
        return isFree(setup, 'a', { category: 'orders' });
      }
    }
    options.category = 'users';
    expect(await setup.job().in(() => new Kept().method())).toBe(false);
  });

  /** A class with something that @Locked does not take, as JavaScript would write it. */
  function define(kind: 'getter' | 'setter' | 'field' | 'accessor' | 'class' | 'generator'): unknown {
    const decorator = Locked('a') as unknown as (value: unknown, context: { kind: string; name: string }) => void;
    if (kind === 'class') return decorator(class C {}, { kind, name: 'C' });
    if (kind === 'generator') return decorator(Legacy.prototype.generator, { kind: 'method', name: 'x' });
    return decorator(kind === 'field' ? undefined : () => {}, { kind, name: 'x' });
  }
});
