import type { InspectOptions, inspect } from 'node:util';

const custom = Symbol.for('nodejs.util.inspect.custom');

interface Shown {
  toJSON(): unknown;
}

/** Lets `util.inspect`, and so `console.log` and loggers, show the objects of a class as their `toJSON` shows them. */
export function inspectAsJson(type: { readonly prototype: Shown }, name: string): void {
  const value = function (this: Shown, _depth: number, options: InspectOptions, print: typeof inspect): string {
    return `${name} ${print(this.toJSON(), options)}`;
  };
  Object.defineProperty(type.prototype, custom, { value });
}

/** Lets `util.inspect` show a field of an error, if it has a value, that nothing else shows: it is not enumerable. */
export function inspectWith<E extends Error>(type: { readonly prototype: E }, field: keyof E & string): void {
  const value = function (this: E, _depth: number, options: InspectOptions, print: typeof inspect): string {
    const error = print(this, { ...options, customInspect: false });
    return this[field] === undefined ? error : `${error}, ${field}: ${print(this[field], options)}`;
  };
  Object.defineProperty(type.prototype, custom, { value });
}
