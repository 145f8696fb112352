// What only standard decorators can be put on. Compiled, never run.
import { Locked } from 'reenlock';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function expectTrue<T extends true>(): string;

export class Private {
  readonly #prefix: string = 'order';

  @Locked(function (id) {
    expectTrue<Same<typeof id, string>>();
    return `${this.#prefix}:${id}`;
  })
  async #hidden(id: string): Promise<string> {
    return id;
  }

  call(id: string): Promise<string> {
    return this.#hidden(id);
  }

  // @ts-expect-error its argument is text
  @Locked((id: number) => id)
  async #wrong(_id: string): Promise<void> {}

  callWrong(): Promise<void> {
    return this.#wrong('id');
  }

  // @ts-expect-error not a method
  @Locked('report')
  accessor value: Promise<void> = Promise.resolve();
}

void class {
  @Locked((id) => [expectTrue<Same<typeof id, number>>(), id])
  async method(_id: number): Promise<void> {}
};
