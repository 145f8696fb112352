import { type OptionsFirst, optionsOf } from '../options-first.ts';
import { bare } from './bare-app.ts';
import type { Framework } from './frameworks.ts';
import { type Build, ServerStage, type ServerStageOptions } from './server-stage.ts';
import { type SharedStore, type SharedStoreKind, sharedStores } from './shared-stores.ts';

export interface ServiceOptions extends ServerStageOptions {
  /** Default: none. */
  readonly framework?: Framework;
}

/** Starts a service: a server with `Locks` of its own, as in a process of its own. */
export type StartService = (...how: OptionsFirst<ServiceOptions, Build>) => Promise<ServerStage>;

/** Runs tests with services that share a store, on each of `sharedStores`. All of them end after each test. */
export function describeServices(name: string, body: (start: StartService, kind: SharedStoreKind) => void): void {
  describe.each(sharedStores)(`${name} ($name)`, (kind) => {
    let shared: SharedStore;
    // A busy machine may take long to make a cluster of databases.
    beforeAll(async () => {
      shared = await kind.start();
    }, 60_000);
    afterEach(async () => {
      await ServerStage.endAll();
      await shared.release();
    });
    afterAll(() => shared.stop());
    body((...how) => {
      const [{ framework = bare, ...options } = {}, build] = optionsOf(how);
      return ServerStage.start(framework, { store: shared.open(), ...kind.options, ...options }, build);
    }, kind);
  });
}

/** Calls a service, which must succeed, and returns the JSON that it sends. */
export async function called<T>(
  service: ServerStage,
  path: string,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<T> {
  const url = `http://127.0.0.1:${service.port}${path}`;
  const response = await fetch(url, signal === undefined ? { headers } : { headers, signal });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path} of the service failed: ${response.status} ${text}`);
  return JSON.parse(text) as T;
}

/** A number that code changes as it must only do alone: it reads, does something meanwhile, and writes. */
export class Balance {
  #value: number;

  constructor(value: number) {
    this.#value = value;
  }

  get value(): number {
    return this.#value;
  }

  async add(amount: number, meanwhile: () => PromiseLike<unknown>): Promise<void> {
    const read = this.#value;
    await meanwhile();
    this.#value = read + amount;
  }
}
