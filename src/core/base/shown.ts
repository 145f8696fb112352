import type { InspectOptions, inspect } from 'node:util';

interface Shown {
  toJSON(): unknown;
}

/** Lets `util.inspect`, and so `console.log` and loggers, show the objects of a class as their `toJSON` shows them. */
export function inspectAsJson(type: { readonly prototype: Shown }, name: string): void {
  const value = function (this: Shown, _depth: number, options: InspectOptions, print: typeof inspect): string {
    return `${name} ${print(this.toJSON(), options)}`;
  };
  Object.defineProperty(type.prototype, Symbol.for('nodejs.util.inspect.custom'), { value });
}
