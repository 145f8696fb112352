import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AcquireOptions } from '../../src/core/index.ts';
import { type Script, startScript } from '../support/processes/processes.ts';
import type { Entry } from './history.ts';
import type { ClientSetup, Look, Order } from './processes/client.ts';
import type { Counted, Counting } from './processes/counter.ts';
import type { Done, Mix } from './processes/mixed-work.ts';

export interface Refusal {
  readonly code: string;
  readonly outcome?: string;
  readonly status?: number;
}

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

/** The client processes of a test, and what they all went through. */
export class Crew {
  readonly #folder: string = mkdtempSync(join(tmpdir(), 'reenlock-faults-'));
  readonly #clients: Client[] = [];
  readonly #befell: Entry[] = [];

  /** A new process; resolves once it can reach its store. */
  async join(setup: Omit<ClientSetup, 'name' | 'file'>): Promise<Client> {
    const name = `p${this.#clients.length + 1}`;
    const client = new Client({ ...setup, name, file: join(this.#folder, name) }, (kind) =>
      this.#befell.push({ at: Number(process.hrtime.bigint()) / 1e6, kind, process: name }),
    );
    this.#clients.push(client);
    await client.ready;
    return client;
  }

  /** All that has happened so far. */
  get history(): Entry[] {
    const told = this.#clients.flatMap(({ file }) => entriesOf(file));
    return [...told, ...this.#befell].toSorted((a, b) => a.at - b.at);
  }

  /** The names of the processes that were killed. */
  get dead(): ReadonlySet<string> {
    return new Set(this.#befell.filter(({ kind }) => kind === 'killed').map((entry) => entry.process));
  }

  /** Ends all processes, each of which must end by itself. */
  async end(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.end()));
  }

  /** Stops what runs, however the test went. */
  async stop(): Promise<void> {
    for (const client of this.#clients) await client.destroy();
    rmSync(this.#folder, { recursive: true });
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
      // Processes share some traces on purpose, to enter each other's holds again.
      env: { NODE_OPTIONS: '--disable-warning=LOCK_OVERLAP' },
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

  /** Does all that an application does with locks, for some time. */
  mix(mix: Mix): Promise<Done> {
    return this.#obey({ act: 'mix', ...mix }) as Promise<Done>;
  }

  /** Counts in a database under locks. */
  async count(counting: Counting): Promise<void> {
    await this.#obey({ act: 'count', ...counting });
  }

  /** Ends that, and answers how far it came. */
  stopCounting(): Promise<Counted> {
    return this.#obey({ act: 'stopCounting' }) as Promise<Counted>;
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
