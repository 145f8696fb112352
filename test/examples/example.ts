import { EventEmitter, once } from 'node:events';
import { join } from 'node:path';
import Redis from 'ioredis';
import { createLocks, runInTrace } from 'reenlock';
import { RedisStore } from 'reenlock/redis';
import {
  type Script,
  type ScriptOptions,
  type ScriptResult,
  startScript,
  tsx,
} from '../support/processes/processes.ts';

const examples = join(__dirname, '../../examples');

/** Where an example's file is. */
export function exampleFile(name: string): string {
  return join(examples, name);
}

const running = new Set<Example>();

/** Ends whatever examples still run: for `afterEach`, so that a test that fails leaves none behind. */
export async function stopExamples(): Promise<void> {
  await Promise.all([...running].map((example) => example.stop()));
}

/** An example server in a process of its own, on a free port; in memory unless the environment names a Redis. */
export class Example {
  readonly #script: Script;
  readonly #lines: string[] = [];
  readonly #arrivals = new EventEmitter();
  #url = '';

  private constructor(script: Script) {
    this.#script = script;
    running.add(this);
    void this.#collect();
  }

  static async start(name: string, env: Readonly<Record<string, string>> = {}): Promise<Example> {
    const { env: own, ...options } = compiling(name);
    const script = startScript(exampleFile(name), { ...options, env: { REDIS_URL: '', PORT: '0', ...own, ...env } });
    const example = new Example(script);
    const line = await example.line(/^Listening on (.*)$/);
    example.#url = line.replace('Listening on ', '');
    return example;
  }

  get lines(): readonly string[] {
    return this.#lines;
  }

  get exited(): Promise<ScriptResult> {
    return this.#script.exited;
  }

  url(path: string): string {
    return this.#url + path;
  }

  /** The `count`th line that fits; rejects when the process ends without it. */
  async line(pattern: RegExp, count = 1): Promise<string> {
    const over = this.exited.then(({ code, stderr }) => {
      throw new Error(`The example ended (code ${code}) without a line like ${pattern}:\n${stderr}`);
    });
    over.catch(() => {});
    while (true) {
      const line = this.#lines.filter((one) => pattern.test(one))[count - 1];
      if (line !== undefined) return line;
      await Promise.race([once(this.#arrivals, 'line'), over]);
    }
  }

  kill(signal: NodeJS.Signals): void {
    this.#script.kill(signal);
  }

  async stop(): Promise<void> {
    running.delete(this);
    await this.#script.stop();
  }

  async #collect(): Promise<void> {
    for await (const line of this.#script.lines()) {
      this.#lines.push(line);
      this.#arrivals.emit('line');
    }
  }
}

/** What compiles an example: Nest's decorators need options of their own. */
function compiling(name: string): ScriptOptions {
  if (!name.startsWith('nest-')) return {};
  return { env: { TSX_TSCONFIG_PATH: 'tsconfig.nest.json' }, execArgv: tsx };
}

/** Ships one unit of an order. */
export function ship(example: Example, id: string): Promise<Response> {
  return fetch(example.url(`/orders/${id}/shipments`), { method: 'POST' });
}

export interface OrderView {
  readonly id: string;
  readonly shipped: number;
  readonly stock: number;
  readonly charged: number;
  readonly settled: number;
}

export async function readOrder(example: Example, id: string): Promise<OrderView> {
  const response = await fetch(example.url(`/orders/${id}`));
  return (await response.json()) as OrderView;
}

/** Runs a job of the test's own, with locks in the Redis that the examples share. */
export async function beside(redisUrl: string, routine: () => Promise<void>): Promise<void> {
  const client = new Redis(redisUrl);
  const locks = createLocks({ store: new RedisStore({ client }) });
  try {
    await runInTrace(routine, { locks });
  } finally {
    await locks.close({ drainMs: 0 });
    await client.quit();
  }
}
