import type { CasAdapter, CasReading } from 'reenlock/redis';

type Operation = 'read' | 'create' | 'replace' | 'remove';

/** The four operations on a Map, with a clock that a test sets. It forgets nothing by itself, and does as it is told. */
export class MapCas implements CasAdapter {
  readonly texts: Map<string, string> = new Map();
  /** What was asked for, in order; the writes with their `ttlMs`. */
  readonly calls: { readonly operation: Operation; readonly ttlMs?: number }[] = [];
  nowMs: number = 1_700_000_000_000;
  /** Called before an operation is done: it may change the texts, wait, or throw. */
  before: (operation: Operation, key: string) => unknown = () => {};
  /** Called after it was done. */
  after: (operation: Operation, key: string) => unknown = () => {};

  get names(): Operation[] {
    return this.calls.map(({ operation }) => operation);
  }

  read(key: string): Promise<CasReading> {
    return this.#do('read', key, undefined, () => ({ value: this.texts.get(key), nowUs: this.nowMs * 1000 }));
  }

  create(key: string, value: string, ttlMs: number): Promise<boolean> {
    return this.#do('create', key, ttlMs, () => !this.texts.has(key) && this.texts.set(key, value) === this.texts);
  }

  replace(key: string, old: string, value: string, ttlMs: number): Promise<boolean> {
    const put = () => this.texts.get(key) === old && this.texts.set(key, value) === this.texts;
    return this.#do('replace', key, ttlMs, put);
  }

  remove(key: string, old: string): Promise<boolean> {
    return this.#do('remove', key, undefined, () => this.texts.get(key) === old && this.texts.delete(key));
  }

  async #do<T>(operation: Operation, key: string, ttlMs: number | undefined, act: () => T): Promise<T> {
    this.calls.push(ttlMs === undefined ? { operation } : { operation, ttlMs });
    await this.before(operation, key);
    const answer = act();
    await this.after(operation, key);
    return answer;
  }
}
