import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../support/until.ts';
import type { Backend, Fault, Random } from './backend.ts';
import { type Client, Crew } from './crew.ts';
import { type Entry, violationsOf } from './history.ts';
import { traceOf } from './nesting-rules.ts';
import { openStore } from './processes/open-store.ts';
import { seed } from './seed.ts';

const pool = { key: 'pool', permits: 3 };
const keys = ['order:a', 'order:b', 'order:c', 'order:d'];
/** Deadlocks are only found by stores that keep edges: the others refuse soon. */
const locks = { leaseMs: 1_000, claimMs: 400, pollMs: 100, storeTimeoutMs: 500, waitMs: 2_000, drainMs: 0 };
/** How many acquires a process has under way. */
const lines = 3;

/** What a soak came to. */
export interface Figures {
  readonly granted: number;
  readonly reads: number;
  readonly permits: number;
  /** Of them by branches of trees, and again of them in a process that was called. */
  readonly branches: number;
  readonly calls: number;
  readonly lost: number;
  readonly refused: number;
  readonly forced: number;
  readonly faults: Readonly<Record<string, number>>;
}

/**
 * Lets processes do all that applications do with locks, while one to three things at once go wrong with the servers,
 * with the connections to them and with the processes themselves. What goes wrong, and in which order, follows from the
 * seed; what it hits is up to the machine.
 */
export class Soak {
  readonly #backend: Backend;
  readonly #random: Random;
  readonly #crew = new Crew();
  readonly #working = new Map<Client, Promise<unknown>>();
  readonly #counts: Record<string, number> = {};
  #untilMs = 0;

  constructor(backend: Backend, random: Random) {
    this.#backend = backend;
    this.#random = random;
  }

  async run(ms: number): Promise<void> {
    // Counted from when all work: to start processes takes as long as the machine likes.
    const clients = await Promise.all([1, 2, 3].map(() => this.#start()));
    this.#untilMs = performance.now() + ms;
    for (const client of clients) this.#work(client);
    while (performance.now() < this.#untilMs) await this.#trouble();
    await Promise.all(this.#working.values());
  }

  /** Ends all processes, and checks what they went through, and that nothing of a living one is left. */
  async end(): Promise<Figures> {
    // A release that met the last fault is repeated about each second: it is to be answered before its process ends.
    await sleep(4_000);
    await this.#crew.end();
    const { history } = this.#crew;
    const rules = { fifo: false, nesting: this.#backend.setup.kind !== 'quorum' };
    expect(violationsOf(history, rules)).toEqual([]);
    expect(await this.#left()).toEqual([]);
    const count = (kind: Entry['kind'], of = /^/) =>
      history.filter(({ kind: its, owner = '' }) => its === kind && of.test(owner)).length;
    const granted = (mode: Entry['mode']) => {
      const asked = new Set(
        history.filter((entry) => entry.mode === mode).map(({ process, hold }) => `${process} ${hold}`),
      );
      return history.filter(({ kind, process, hold }) => kind === 'granted' && asked.has(`${process} ${hold}`)).length;
    };
    return {
      granted: count('granted'),
      reads: granted('read'),
      permits: granted('permit'),
      branches: count('granted', /\//),
      calls: count('granted', /\/p\d+\.\d+$/),
      lost: count('lost'),
      refused: count('refused'),
      forced: count('forced'),
      faults: this.#counts,
    };
  }

  async stop(): Promise<void> {
    await this.#crew.stop();
  }

  /** One to three faults, of different kinds, that begin one after the other and end together. */
  async #trouble(): Promise<void> {
    const all = [...this.#backend.faults, ...this.#ofProcesses()].map((fault) => ({ fault, at: this.#random() }));
    const shuffled = all.sort((a, b) => a.at - b.at).map(({ fault }) => fault);
    const ofEachKind = shuffled.filter(({ kind }, n) => shuffled.findIndex((other) => other.kind === kind) === n);
    const some = ofEachKind.slice(0, 1 + Math.floor(3 * this.#random() ** 2));
    // What changes data asks the server, which must not be stopped by then.
    const chosen = [...some.filter(({ kind }) => kind === 'data'), ...some.filter(({ kind }) => kind !== 'data')];
    const ends: { readonly kind: Fault['kind']; readonly end: () => unknown }[] = [];
    for (const { kind, name, begin } of chosen) {
      this.#counts[name] = (this.#counts[name] ?? 0) + 1;
      const end = await begin();
      if (end !== undefined) ends.push({ kind, end });
      await sleep(300 * this.#random());
    }
    await sleep(1_200 * this.#random());
    // A process that joins waits until it can reach its servers.
    for (const { end } of ends.filter(({ kind }) => kind !== 'process')) await end();
    for (const { end } of ends.filter(({ kind }) => kind === 'process')) await end();
    await sleep(500 * this.#random());
  }

  #ofProcesses(): Fault[] {
    const some = () => [...this.#working.keys()][Math.floor(this.#random() * this.#working.size)] as Client;
    return [
      {
        kind: 'process',
        name: 'a process stopped',
        begin: async () => {
          const client = some();
          client.pause();
          return () => client.resume();
        },
      },
      {
        kind: 'process',
        name: 'a process killed, and another started',
        begin: async () => {
          const client = some();
          await client.kill();
          await this.#working.get(client);
          this.#working.delete(client);
          return async () => this.#work(await this.#start());
        },
      },
    ];
  }

  #start(): Promise<Client> {
    return this.#crew.join({ store: this.#backend.setup, locks });
  }

  #work(client: Client): void {
    const ms = Math.max(0, this.#untilMs - performance.now());
    const work = client.mix({ keys, pool, lines, ms, seed: Math.floor(seed + 1e6 * this.#random()) });
    // A process that is killed comes to no result; what it did is in the history.
    const isDead = (): boolean => this.#crew.dead.has(client.name);
    this.#working.set(
      client,
      work.catch((error) => {
        if (!isDead()) throw error;
      }),
    );
  }

  /** Holds and waiters of living processes. What the dead have left ends with its lease, and waiters that are passed over. */
  async #left(): Promise<string[]> {
    const { dead, history } = this.#crew;
    const ofDead = history.filter(({ owner, process }) => owner !== undefined && dead.has(process));
    const traces = new Set(ofDead.map(({ owner }) => traceOf({ owner: owner as string })));
    const opened = openStore(this.#backend.direct);
    await opened.ready;
    try {
      const look = async (): Promise<string[]> => {
        const states = await Promise.all([...keys, pool.key].map((key) => opened.store.inspect(key)));
        return states.flatMap(({ holds, waiters }) => [
          ...holds.map(({ owner }) => `${owner} holds`),
          ...waiters.filter((waiter) => !traces.has(traceOf(waiter))).map(({ owner }) => `${owner} waits`),
        ]);
      };
      return await until(look, (left) => left.length === 0);
    } finally {
      await opened.close();
    }
  }
}
