import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import express from 'express';
import { type AcquireOptions, isLockError, type LockMode } from '../../../src/core/index.ts';
import { lockOn, traceContext } from '../../../src/express/index.ts';
import { pathOf } from '../../support/path-of.ts';
import type { Recorder, Worker } from '../recorder.ts';
import { seeded } from '../seed.ts';
import { announce, type Home, pathHeader, TreeWork } from './tree-work.ts';

export interface Mix {
  readonly keys: readonly string[];
  /** A key with permits, so many. */
  readonly pool: { readonly key: string; readonly permits: number };
  /** How many do it side by side. */
  readonly lines: number;
  readonly ms: number;
  readonly seed: number;
}

/** How long a hold is kept at most. */
const holdMs = 30;

/** How often each was done, and how often it came to a refusal of the package's. */
export type Done = Record<string, { count: number; refused: number }>;

/**
 * Does all that an application does with locks, for some time: to write and to read, with permits and priorities, several keys
 * nested in any order or as a batch, given up by a signal, entered again by one trace in several processes, detached and
 * resumed, taken by force, as requests behind a guard whose clients may leave, and in trees of branches over several processes. Rejects with whatever is not a refusal.
 */
export async function mixedWork(recorder: Recorder, home: Home, { keys, pool, lines, ms, seed }: Mix): Promise<Done> {
  const random = seeded(seed);
  const acts = new Acts(recorder, home, keys, pool, random);
  const done: Done = {};
  const until = performance.now() + ms;
  await acts.open();
  const line = async (number: number): Promise<void> => {
    while (performance.now() < until) {
      const [act, run] = acts.pick(number);
      done[act] ??= { count: 0, refused: 0 };
      const tally = done[act];
      tally.count += 1;
      try {
        await run();
      } catch (error) {
        if (!isLockError(error)) throw error;
        tally.refused += 1;
        await sleep(5);
      }
    }
  };
  await Promise.all(Array.from({ length: lines }, (_, number) => line(number)));
  await acts.close();
  return done;
}

type Act = readonly [weight: number, name: string, run: (line: number) => Promise<void>];

class Acts {
  readonly #recorder: Recorder;
  readonly #home: Home;
  readonly #keys: readonly string[];
  readonly #pool: Mix['pool'];
  readonly #random: () => number;
  readonly #server: Server;
  readonly #trees: TreeWork;
  #last = 0;
  readonly #all: readonly Act[] = [
    [6, 'one key', () => this.#one()],
    [3, 'a permit', (line) => this.#permit(line)],
    [2, 'nested keys', () => this.#nested()],
    [2, 'a batch', () => this.#batch()],
    [2, 'an abort', () => this.#aborted()],
    [2, 'a shared trace', (line) => this.#shared(line)],
    [2, 'a detached hold', () => this.#detached()],
    [3, 'a request', () => this.#request()],
    [4, 'a tree', () => this.#trees.play()],
    [1, 'a force release', () => this.#recorder.force(this.#random() < 0.8 ? this.#key() : this.#pool.key)],
  ];

  constructor(recorder: Recorder, home: Home, keys: readonly string[], pool: Mix['pool'], random: () => number) {
    this.#recorder = recorder;
    this.#home = home;
    this.#keys = keys;
    this.#pool = pool;
    this.#random = random;
    this.#server = createServer(this.#application());
    this.#trees = new TreeWork(recorder, home, random, keys, 'order:');
  }

  async open(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    announce(this.#home, (this.#server.address() as AddressInfo).port);
  }

  async close(): Promise<void> {
    this.#server.close();
    this.#server.closeIdleConnections();
    await once(this.#server, 'close');
  }

  pick(line: number): readonly [name: string, run: () => Promise<void>] {
    const chances = this.#all.flatMap((act) => Array.from({ length: act[0] }, () => act));
    const [, name, run] = chances[Math.floor(this.#random() * chances.length)] as Act;
    return [name, () => run(line)];
  }

  async #one(): Promise<void> {
    const { mode, priority } = this.#options();
    await this.#job((worker) => this.#during(worker.acquire(this.#key(), { mode, priority })));
  }

  /** Also by a trace that the same line of other processes has: it takes one permit in all of them. */
  async #permit(line: number): Promise<void> {
    const { key, permits } = this.#pool;
    const { priority } = this.#options();
    const owner = this.#random() < 0.3 ? `shared.p${line}` : this.#owner('p');
    await this.#recorder.job(owner, (worker) => this.#during(worker.acquire(key, { permits, priority })));
  }

  /** Two of them in opposite orders are a deadlock, which one of the two is told. */
  async #nested(): Promise<void> {
    const [outer, inner] = this.#some(2) as [string, string];
    await this.#job(async (worker) => {
      const release = await worker.acquire(outer, this.#options());
      try {
        await this.#during(worker.acquire(inner, this.#options()));
      } finally {
        await release();
      }
    });
  }

  async #batch(): Promise<void> {
    await this.#job((worker) => this.#during(worker.acquireAll(this.#some(3), this.#options())));
  }

  async #aborted(): Promise<void> {
    const signal = AbortSignal.timeout(Math.ceil(this.#random() * 2 * holdMs));
    await this.#job((worker) => this.#during(worker.acquire(this.#key(), { ...this.#options(), signal })));
  }

  /** A hold that outlives its job, and is taken up again, if nobody took it by force meanwhile. */
  async #detached(): Promise<void> {
    const key = this.#key();
    await this.#job(async (worker) => {
      const resume = await worker.detach(key, 1_000);
      await sleep(this.#random() * holdMs);
      await this.#during(resume());
    });
  }

  /** The same line of every process has the same trace. */
  async #shared(line: number): Promise<void> {
    const key = this.#keys[line % this.#keys.length] as string;
    const work = async (worker: Worker): Promise<void> => {
      const release = await worker.acquire(key);
      try {
        await this.#during(worker.acquire(key));
      } finally {
        await release();
      }
    };
    await this.#recorder.job(`shared.${line}`, work);
  }

  /** A request to this process's own server; its client may leave at any time. */
  async #request(): Promise<void> {
    const owner = this.#owner('r');
    const signal = AbortSignal.timeout(Math.ceil((0.2 + this.#random()) * 10 * holdMs));
    const { port } = this.#server.address() as AddressInfo;
    try {
      const answer = await fetch(`http://127.0.0.1:${port}/${this.#key()}`, {
        method: this.#random() < 0.5 ? 'GET' : 'POST',
        headers: { 'X-Trace-Id': owner, Connection: 'close' },
        signal,
      });
      await answer.text();
    } catch (error) {
      // It has left, or the handler destroyed the connection.
      if ((error as Error).name !== 'TimeoutError' && !(error instanceof TypeError)) throw error;
    }
  }

  #application(): express.Express {
    const app = express();
    app.use(traceContext({ locks: this.#recorder.locks, trust: 'all' }));
    const handle: express.RequestHandler = async (req, res) => {
      const hold = req.lock as NonNullable<typeof req.lock>;
      const path = req.get(pathHeader) ?? pathOf(hold);
      const id = this.#recorder.enter(hold, path);
      await sleep(this.#random() * holdMs);
      // Whatever it does next ends the work.
      this.#recorder.leaving(path, hold.key, id);
      if (this.#random() < 0.1) throw new Error('The handler fails');
      if (this.#random() < 0.1) req.socket.destroy();
      else res.send('done');
    };
    app.get(
      '/:key',
      lockOn((req) => req.params.key, { mode: 'read' }),
      handle,
    );
    app.post(
      '/:key',
      lockOn((req) => req.params.key),
      handle,
    );
    const fail: express.ErrorRequestHandler = (error, _req, res, _next) => {
      res.status(error.status ?? 500).end();
    };
    return app.use(fail);
  }

  async #job(routine: (worker: Worker) => Promise<void>): Promise<void> {
    await this.#recorder.job(this.#owner('j'), routine);
  }

  async #during(acquired: Promise<() => Promise<void>>): Promise<void> {
    const release = await acquired;
    await sleep(this.#random() * holdMs);
    await release();
  }

  /** The process's name comes first, by which those of the dead are known. */
  #owner(kind: string): string {
    this.#last += 1;
    return `${this.#home.name}.${kind}${this.#last}`;
  }

  #key(): string {
    return this.#keys[Math.floor(this.#random() * this.#keys.length)] as string;
  }

  /** Different keys, in any order. */
  #some(count: number): string[] {
    return this.#keys
      .map((key) => ({ key, at: this.#random() }))
      .sort((a, b) => a.at - b.at)
      .slice(0, count)
      .map(({ key }) => key);
  }

  #options(): AcquireOptions {
    const mode: LockMode = this.#random() < 0.4 ? 'read' : 'write';
    const priority = this.#random() < 0.2 ? Math.round(this.#random() * 20) - 10 : 0;
    return { mode, priority };
  }
}
