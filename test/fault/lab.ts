import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { AcquireOptions, LocksOptions } from '../../src/core/index.ts';
import { RedisStore } from '../../src/core/stores/redis/redis-store.ts';
import { type Script, startScript } from '../support/processes/processes.ts';
import { TcpProxy } from '../support/processes/tcp-proxy.ts';
import { disconnectTimeout } from '../support/redis/client.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { type Entry, type Rules, violationsOf } from './history.ts';
import type { ClientSetup, Look, Order } from './processes/client.ts';

export interface Refusal {
  readonly code: string;
  readonly outcome?: string;
  readonly status?: number;
}

const patience: LocksOptions = { waitMs: 60_000, storeTimeoutMs: 20_000, claimMs: 20_000 };

interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: Refusal;
}

/** A hold in a client process. */
export interface RemoteHold {
  readonly fence: number;
  look(): Promise<Look>;
  release(): Promise<void>;
}

/** A server, a proxy before it, client processes, and what they all went through. */
export class Lab {
  readonly server: RedisServer;
  readonly proxy: TcpProxy;
  /** The test's own connection, past the proxy. */
  readonly admin: Redis;
  readonly #folder: string = mkdtempSync(join(tmpdir(), 'reenlock-faults-'));
  readonly #clients: Client[] = [];
  readonly #befell: Entry[] = [];

  private constructor(server: RedisServer, proxy: TcpProxy) {
    this.server = server;
    this.proxy = proxy;
    this.admin = new Redis(server.port, { retryStrategy: () => 10, maxRetriesPerRequest: null, disconnectTimeout });
    // A test of a server that is killed knows why.
    this.admin.on('error', () => {});
  }

  static async start(args: readonly string[] = []): Promise<Lab> {
    const server = await startRedis({ args });
    return new Lab(server, await TcpProxy.start(server.port));
  }

  get store(): RedisStore {
    return new RedisStore({ client: this.admin });
  }

  /** A new client process; its connections go through the proxy. Waiters, calls and claims last for as long as a busy machine takes. */
  async client(locks: LocksOptions = {}, over: Partial<ClientSetup> = {}): Promise<Client> {
    const name = `p${this.#clients.length + 1}`;
    const file = join(this.#folder, name);
    const client = new Client(
      { name, file, store: { kind: 'redis', port: this.proxy.port }, locks: { ...patience, ...locks }, ...over },
      (kind) => this.#befell.push({ at: Number(process.hrtime.bigint()) / 1e6, kind, process: name }),
    );
    this.#clients.push(client);
    await client.ready;
    return client;
  }

  /** Some client processes, side by side. */
  clients(count: number, locks: LocksOptions = {}): Promise<Client[]> {
    return Promise.all(Array.from({ length: count }, () => this.client(locks)));
  }

  /** All that has happened so far. */
  get history(): Entry[] {
    const told = this.#clients.flatMap(({ file }) => entriesOf(file));
    return [...told, ...this.#befell].toSorted((a, b) => a.at - b.at);
  }

  /** Who waits for a key, in order, and who holds it, by the server. */
  async known(key: string): Promise<{ holders: string[]; waiters: string[]; fences: number[] }> {
    const { holds, waiters } = await this.store.inspect(key);
    return {
      holders: holds.map(({ owner }) => owner),
      waiters: waiters.map(({ owner }) => owner),
      fences: holds.map(({ fence }) => fence),
    };
  }

  /** Who waits for a key, in order, and has been told so: what disturbs its call sooner is an error. */
  async waiters(key: string): Promise<string[]> {
    const { waiters } = await this.known(key);
    const told = new Set(
      this.history.flatMap((entry) => (entry.kind === 'queued' ? [`${entry.owner} ${entry.key}`] : [])),
    );
    return waiters.filter((owner) => told.has(`${owner} ${key}`));
  }

  /** Who was told that it waits for a key, or has got it: behind a short lease, one may be served before all have come. */
  told(key: string): Set<string> {
    const told = this.history.filter((entry) => entry.key === key && ['queued', 'granted'].includes(entry.kind));
    return new Set(told.map(({ owner }) => owner as string));
  }

  /**
   * Ends all clients, each of which must end by itself, looks that nothing is left on the server, and checks the history.
   * Answers the history.
   */
  async end(rules: Rules = {}, { mayLeave = false }: { mayLeave?: boolean } = {}): Promise<Entry[]> {
    this.proxy.heal();
    await Promise.all(this.#clients.map((client) => client.end()));
    const history = this.history;
    const left = mayLeave ? [] : await this.#left();
    expect({ violations: violationsOf(history, rules), left }).toEqual({ violations: [], left: [] });
    return history;
  }

  /** Stops what runs, however the test went. */
  async stop(): Promise<void> {
    for (const client of this.#clients) await client.destroy();
    this.admin.disconnect();
    await this.proxy.stop();
    await this.server.stop();
    rmSync(this.#folder, { recursive: true });
  }

  /** Locks with a hold or a waiter of a process that was not killed. What those leave ends with its time. */
  async #left(): Promise<string[]> {
    const left: string[] = [];
    const dead = new Set(this.#befell.filter(({ kind }) => kind === 'killed').map((entry) => entry.process));
    const isLiving = (owner: string): boolean => !dead.has(owner.split('.')[0] as string);
    for (const name of await this.admin.keys('reenlock:*')) {
      const key = /\{(.*)\}/.exec(name)?.[1] as string;
      const { holders, waiters } = await this.known(key);
      const owners = [...holders, ...waiters].filter(isLiving);
      if (owners.length > 0) left.push(`${name}: ${owners.join(' ')}`);
    }
    return left;
  }
}

function entriesOf(file: string): Entry[] {
  try {
    const lines = readFileSync(file, 'utf8').split('\n');
    // The last one may be cut short by a kill.
    return lines.slice(0, -1).map((line) => JSON.parse(line) as Entry);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** A client process, and the end of the line to it. */
export class Client {
  readonly name: string;
  readonly file: string;
  readonly ready: Promise<unknown>;
  readonly #script: Script;
  readonly #befell: (kind: 'disturbed' | 'killed') => void;
  #orders = 0;
  #isOver = false;

  constructor(setup: ClientSetup, befell: (kind: 'disturbed' | 'killed') => void) {
    this.name = setup.name;
    this.file = setup.file;
    this.#befell = befell;
    this.#script = startScript(join(__dirname, 'processes/client.ts'), {
      args: [JSON.stringify(setup)],
      timeoutMs: 600_000,
    });
    this.ready = this.#script.once<Answer>(({ id }) => id === 0);
  }

  /** Acquires; rejects with the `Refusal`. */
  async acquire(key: string, options: AcquireOptions = {}, trace?: string): Promise<RemoteHold> {
    const order = { act: 'acquire', key, options, ...(trace === undefined ? {} : { trace }) } as const;
    return this.#hold(order);
  }

  /** Sends an acquire and blocks the event loop before its answer can be read. */
  blockAcquiring(key: string, ms: number): Promise<RemoteHold> {
    return this.#hold({ act: 'block', ms, key });
  }

  async block(ms: number): Promise<void> {
    this.#befell('disturbed');
    await this.#obey({ act: 'block', ms });
  }

  /** Works on the keys for a time; answers how many holds it had, or how many deposits were taken. */
  work(
    keys: readonly string[],
    lines: number,
    ms: number,
    from: number,
    more: Partial<Order & { act: 'work' }> = {},
  ): Promise<number> {
    return this.#obey({ ...more, act: 'work', keys, lines, ms, seed: from }) as Promise<number>;
  }

  async close(drainMs: number): Promise<void> {
    await this.#obey({ act: 'close', drainMs });
  }

  /** Throws in the client where nobody catches it; answers its exit code and the last of what it wrote. */
  async fail(): Promise<{ code: number | null; stderr: string }> {
    this.#over('killed');
    this.#obey({ act: 'fail' }).catch(() => {});
    return this.#script.exited;
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<{ code: number | null; stderr: string }> {
    if (signal === 'SIGKILL') this.#over('killed');
    else this.#over();
    this.#script.kill(signal);
    return this.#script.exited;
  }

  pause(): void {
    this.#befell('disturbed');
    this.#script.kill('SIGSTOP');
  }

  resume(): void {
    this.#script.kill('SIGCONT');
  }

  /** From here on its waiters may be passed over: it could not be reached. */
  disturbed(): void {
    this.#befell('disturbed');
  }

  /** Closes its locks and its connection; with that it must end by itself. */
  async end(): Promise<void> {
    if (this.#isOver) return;
    await this.#obey({ act: 'end' }).catch(() => {});
    this.#over();
    const { code, stderr } = await this.#script.exited;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  }

  async destroy(): Promise<void> {
    this.#script.kill('SIGKILL');
    await this.#script.exited.catch(() => {});
  }

  async #hold(order: Order): Promise<RemoteHold> {
    const [fence, of] = await this.#send(order);
    return {
      fence: fence as number,
      look: () => this.#obey({ act: 'look', of }) as Promise<Look>,
      release: () => this.#obey({ act: 'release', of }) as Promise<void>,
    };
  }

  #over(how?: 'killed'): void {
    this.#isOver = true;
    if (how !== undefined) this.#befell(how);
  }

  async #obey(order: Order): Promise<unknown> {
    return (await this.#send(order))[0];
  }

  async #send(order: Order): Promise<[value: unknown, id: number]> {
    this.#orders += 1;
    const id = this.#orders;
    this.#script.send({ ...order, id });
    const { value, error } = await this.#script.once<Answer>((answer) => answer.id === id);
    if (error !== undefined) throw error;
    return [value, id];
  }
}
