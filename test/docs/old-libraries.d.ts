// Of the libraries that the pages on migrations compare with: what their packages declare no types for, or where the
// compiler does not find them.
declare module 'async-lock';
declare module 'redlock4';
declare module 'redlock' {
  export default class Redlock {
    constructor(clients: readonly unknown[], settings?: object);
    using<T>(
      keys: readonly string[],
      ms: number,
      routine: (signal: { readonly aborted: boolean; readonly error?: Error }) => Promise<T>,
    ): Promise<T>;
  }
}
