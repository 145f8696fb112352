import type { InspectOptions, inspect } from 'node:util';

const custom = Symbol.for('nodejs.util.inspect.custom');

interface Shown {
  toJSON(): unknown;
}

/** Lets `util.inspect`, and thereby `console.log` and loggers, show the objects of a class as `toJSON` does. */
export function inspectAsJson(type: { readonly prototype: Shown }, name: string): void {
  const value = function (this: Shown, _depth: number, options: InspectOptions, print: typeof inspect): string {
    return `${name} ${print(this.toJSON(), options)}`;
  };
  Object.defineProperty(type.prototype, custom, { value });
}

/** Lets `util.inspect` show fields of an object that are not enumerable. */
export function inspectWith<T extends object>(type: { readonly prototype: T }, ...fields: (keyof T & string)[]): void {
  const value = function (this: T, _depth: number, options: InspectOptions, print: typeof inspect): string {
    return print({ ...Object.fromEntries(fields.map((field) => [field, this[field]])), ...this }, options);
  };
  Object.defineProperty(type.prototype, custom, { value });
}
