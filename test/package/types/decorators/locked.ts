// Compiled in both modes, never run: what must compile does, and each @ts-expect-error marks what must not.
import { Locked, type LockKeys, type MethodKey } from 'reenlock';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function expectTrue<T extends true>(): string;
declare function key(...values: unknown[]): string;

/** One decorator for several methods, and two keys that are written elsewhere. */
const ById = Locked((id: string) => `order:${id}`, { category: 'orders' });
const Report = Locked('report');
const orderKey = (id: string | number): string => `order:${id}`;
declare const eitherKey: 'report' | ((id: string) => string);

// The key function's parameters are those of the method.
export class Inferred {
  readonly prefix: string = 'order';
  static readonly table: string = 'orders';
  private readonly secret: string = 'secret';

  @Locked((id, count) => key(expectTrue<Same<typeof id, string>>(), expectTrue<Same<typeof count, number>>()))
  async all(id: string, count: number): Promise<number> {
    return id.length + count;
  }

  @Locked((id) => id.toUpperCase())
  async fewer(id: string, count: number): Promise<number> {
    return id.length + count;
  }

  @Locked((id) => key(expectTrue<Same<typeof id, string | undefined>>(), id))
  async optional(id?: string): Promise<string | undefined> {
    return id;
  }

  @Locked((id = 'none') => id.toUpperCase())
  async withDefault(id = 'all'): Promise<string> {
    return id;
  }

  @Locked((first, ...rest) => [first, ...rest.map((id) => id.toUpperCase())])
  async rest(first: string, ...rest: string[]): Promise<number> {
    return first.length + rest.length;
  }

  @Locked(({ id }) => id)
  async destructured({ id }: { readonly id: bigint }): Promise<bigint> {
    return id;
  }

  @Locked((id) => id)
  async generic<Id extends string>(id: Id): Promise<Id> {
    return id;
  }

  @Locked(function (id) {
    expectTrue<Same<typeof this, Inferred>>();
    return `${this.prefix}:${this.secret}:${id}`;
  })
  async byThis(id: string): Promise<string> {
    return id;
  }

  @Locked(function () {
    return this.table;
  })
  static async ofClass(): Promise<void> {}

  @Locked((id) => id)
  protected async hidden(id: string): Promise<string> {
    return id;
  }

  @Locked((id) => id)
  plain(id: string): Promise<string> {
    return Promise.resolve(id);
  }
}

// What was decorated is called as before.
export async function call(inferred: Inferred): Promise<void> {
  expectTrue<Same<Parameters<Inferred['all']>, [id: string, count: number]>>();
  const id = await inferred.generic('id');
  expectTrue<Same<typeof id, 'id'>>();
  // @ts-expect-error the method takes a text
  await inferred.fewer(1, 2);
}

// Every kind of key.
export class Keys {
  @Locked('report')
  async constant(_id: string): Promise<void> {}

  @Locked(() => 'report')
  async without(_id: string): Promise<void> {}

  @Locked(async (ids) => ids)
  async later(_ids: readonly string[]): Promise<void> {}

  @Locked((ids) => [ids[0], 1, 2n])
  async missing(_ids: readonly string[]): Promise<void> {}

  @Locked(orderKey, { waitMs: 0, reentrant: 'request' })
  async wider(_id: string): Promise<void> {}

  @Locked((id: string) => id)
  async annotated(_id: string, _count: number): Promise<void> {}

  @Locked((id: string | undefined) => id)
  async annotatedOptional(_id?: string): Promise<void> {}

  @Locked(eitherKey)
  async either(_id: string): Promise<void> {}

  @ById
  async reused(_id: string): Promise<void> {}

  @ById
  static async reusedWithMore(_id: string, _count: number): Promise<void> {}

  @Report
  async reusedConstant(_id: string): Promise<void> {}
}

export const made: MethodKey<Inferred, [id: string]> = function (id): LockKeys {
  return [this.prefix, id];
};

export class Mistakes {
  // @ts-expect-error the method's argument is text
  @Locked((id: number) => id)
  async wrongArgument(_id: string): Promise<void> {}

  // @ts-expect-error the method has one argument
  @Locked((_id: string, count: number) => count)
  async tooFew(_id: string): Promise<void> {}

  // @ts-expect-error the argument may be missing
  @Locked((id: string) => id)
  async mayBeMissing(_id?: string): Promise<void> {}

  // @ts-expect-error text has no such method
  @Locked((id) => id.toFixed())
  async noSuchMethod(_id: string): Promise<void> {}

  // @ts-expect-error a key is text or a number
  @Locked((id) => ({ id }))
  async notAKey(_id: string): Promise<void> {}

  // @ts-expect-error a constant key is text
  @Locked(42)
  async constant(): Promise<void> {}

  // @ts-expect-error a key is needed
  @Locked()
  async without(): Promise<void> {}

  // @ts-expect-error it is a factory
  @Locked
  async uncalled(): Promise<void> {}

  // @ts-expect-error there is no such option
  @Locked('report', { timeout: 10 })
  async noSuchOption(): Promise<void> {}

  // @ts-expect-error durations are numbers
  @Locked((id) => id, { waitMs: '10' })
  async wrongOption(_id: string): Promise<void> {}

  @Locked(function () {
    // @ts-expect-error the object has no such property
    return this.nothing;
  })
  async noSuchProperty(): Promise<void> {}

  // @ts-expect-error it answers without waiting
  @Locked('report')
  synchronous(): string {
    return '';
  }

  // @ts-expect-error it answers without waiting
  @Locked((id) => id)
  synchronousByArgument(id: string): string {
    return id;
  }

  // @ts-expect-error it may answer without waiting
  @Locked('report')
  now(): string | Promise<string> {
    return '';
  }

  // @ts-expect-error what it gets is a promise of this package, not that of another library
  @Locked('report')
  thenable(): PromiseLike<void> {
    return Promise.resolve();
  }

  // @ts-expect-error its work begins after it has returned
  @Locked('report')
  async *generator(): AsyncGenerator<number> {
    yield 1;
  }

  // @ts-expect-error not a method
  @Locked('report')
  get getter(): Promise<void> {
    return Promise.resolve();
  }

  // @ts-expect-error not a method
  @Locked('report')
  field = async (): Promise<void> => {};

  // @ts-expect-error the method's argument is a number
  @ById
  async reusedWrongly(_id: number): Promise<void> {}

  // @ts-expect-error the method has no argument
  @ById
  async reusedWithLess(): Promise<void> {}

  // @ts-expect-error one of the keys takes text
  @Locked(eitherKey)
  async eitherWrongly(_id: number): Promise<void> {}
}

// @ts-expect-error not a method
@Locked('report')
export class Whole {}
