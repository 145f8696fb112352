import { EventEmitter, once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { currentTrace, type LockStore, type Locks, type LocksOptions, MemoryStore } from 'reenlock';
import request, { type Response } from 'supertest';
import { type Clock, systemClock } from '../../../src/core/base/clock.ts';
import { buildLocks } from '../../../src/core/runtime/locks.ts';
import { watchesOf } from '../../../src/http/response/connection-watch.ts';
import { ManualClock } from '../clock/manual-clock.ts';
import { type OptionsFirst, optionsOf } from '../options-first.ts';
import { pathOf } from '../path-of.ts';
import { patienceOfTest } from '../until.ts';
import type { App, Framework, Handler } from './frameworks.ts';
import { Http2Client } from './http2-client.ts';
import { createServerOf, isHttp2, type Protocol } from './protocols.ts';
import { RawClient } from './raw-client.ts';

export interface ServerStageOptions extends LocksOptions {
  /** Whether the application has no `traceContext` of the stage's. */
  readonly bare?: boolean;
  /** The clock of the locks and of their own store. */
  readonly clock?: Clock;
  /** What the server speaks. Default: HTTP/1.1. */
  readonly protocol?: Protocol;
  /** A server of the test's own. */
  readonly server?: Server;
}

/** Puts an application together. */
export type Build = (app: App, stage: ServerStage) => unknown;

/** A server with its locks, and a journal of what happened on it, in order. */
export class ServerStage {
  readonly framework: Framework;
  readonly locks: Locks;
  readonly store: LockStore;
  readonly server: Server;
  readonly protocol: Protocol;
  readonly journal: string[] = [];
  readonly #ids = new Set<string>();
  readonly #sockets = new Map<Socket, readonly number[]>();
  readonly #clients: { destroy(): void }[] = [];
  readonly #clock: Clock;
  readonly #changes = new EventEmitter().setMaxListeners(0);

  private constructor(
    framework: Framework,
    { clock = systemClock, protocol = 'HTTP/1.1', ...rest }: ServerStageOptions,
  ) {
    const { bare: _, server = createServerOf(protocol), ...options } = rest;
    this.framework = framework;
    this.protocol = protocol;
    this.server = server;
    this.#clock = clock;
    this.store = options.store ?? new MemoryStore({ clock });
    recordIds(this.store, this.#ids);
    this.locks = buildLocks({ ...options, store: this.store }, clock);
    for (const event of ['granted', 'waiting', 'renewed', 'released', 'lost', 'timeout', 'aborted'] as const) {
      this.locks.on(event, (details) => this.note(`${event} ${pathOf(details)} ${details.key}`));
    }
    const born = (socket: Socket): void => void this.#sockets.set(socket, listenersOf(socket));
    this.server.on('connection', born).on('secureConnection', born);
  }

  /** Starts an application whose first middleware is `traceContext`. */
  static async start(framework: Framework, ...how: OptionsFirst<ServerStageOptions, Build>): Promise<ServerStage> {
    const [options = {}, build] = optionsOf(how);
    const stage = new ServerStage(framework, options);
    const app = framework.app();
    if (!options.bare) app.use(framework.traceContext({ locks: stage.locks }));
    build(app, stage);
    stage.server.on('request', await app.listener());
    stage.server.listen(0, '127.0.0.1');
    await once(stage.server, 'listening');
    open.add(stage);
    return stage;
  }

  /** Ends every stage that a test has started. Throws when anything is left held or queued. */
  static async endAll(): Promise<void> {
    for (const stage of [...open]) {
      open.delete(stage);
      await stage.#end();
    }
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** Sends a request at once; a trace id makes its lines in the journal readable. */
  async get(path: string, trace = 'first', headers: Record<string, string> = {}): Promise<Response> {
    return request(this.server).get(path).set('X-Trace-Id', trace).set(headers);
  }

  async connect(): Promise<RawClient> {
    const client = await RawClient.connect(this.port, this.protocol);
    this.#clients.push(client);
    return client;
  }

  async connectHttp2(): Promise<Http2Client> {
    const client = await Http2Client.connect(this.port, this.protocol);
    this.#clients.push(client);
    return client;
  }

  /** Sends a request on a connection of its own, whatever the protocol; resolves when it was answered. */
  async visit(path: string, trace: string): Promise<unknown> {
    if (this.protocol === 'HTTP/1.1') return this.get(path, trace);
    if (isHttp2(this.protocol)) {
      const client = await this.connectHttp2();
      await client.request({ path, trace }).closed;
      client.destroy();
      return;
    }
    return (await this.connect()).request({ path, trace, headers: ['Connection: close'] }).closed;
  }

  note(line: string): void {
    this.journal.push(line);
    this.#changes.emit('note');
  }

  /** A handler that notes `<name> in`, waits for `until`, and responds with its name. */
  handler(name: string, until?: Promise<void>): Handler {
    return async (call) => {
      this.note(`${name} in`);
      await until;
      call.send(name);
    };
  }

  /** Resolves once a line stands in the journal, `times` times; rejects with the journal when it never comes. */
  async until(line: string, times = 1): Promise<void> {
    const signal = AbortSignal.timeout(patienceOfTest());
    while (this.count(line) < times) {
      await once(this.#changes, 'note', { signal }).catch(() => {
        throw new Error(`'${line}' did not come:\n${this.journal.join('\n')}`);
      });
    }
  }

  count(line: string): number {
    return this.journal.filter((each) => each === line).length;
  }

  /** Asserts that all of the lines stand in the journal, and each for the first time in this order. */
  expectOrder(...lines: readonly string[]): void {
    expect([...new Set(this.journal)].filter((line) => lines.includes(line))).toEqual(lines);
  }

  /** Who holds the key now, by the store. */
  async holder(key: string): Promise<string | undefined> {
    return (await this.store.inspect(key)).holds[0]?.owner;
  }

  /** Who stands in the key's queue now, by the store. */
  async waiters(key: string): Promise<string[]> {
    return (await this.store.inspect(key)).waiters.map(({ owner }) => owner);
  }

  /** Resolves once nobody holds the key or waits for it. */
  async free(...keys: readonly string[]): Promise<void> {
    await settled(async () => (await this.#leftOn(keys)).join());
  }

  /** Resolves once no connection has more than the listeners that stay on it for its life. */
  async unheard(): Promise<void> {
    await settled(async () => this.#listenersLeft().join('; '));
  }

  /** Closes the server with all of its connections. */
  async shutDown(): Promise<void> {
    if (!this.server.listening) return;
    this.server.close();
    for (const socket of this.#sockets.keys()) socket.destroy();
    await once(this.server, 'close');
  }

  async #end(): Promise<void> {
    for (const client of this.#clients) client.destroy();
    try {
      await settled(async () => (await this.#leftOn([...this.#ids])).join('; '));
    } finally {
      await this.locks.close({ drainMs: 0 });
      await this.shutDown();
    }
    await settled(async () => (this.#closedAndKept() > 0 ? 'what is known of connections that are closed' : ''));
    if (this.#clock instanceof ManualClock) expect(this.#clock.timerCount).toBe(0);
  }

  async #leftOn(ids: readonly string[]): Promise<string[]> {
    const states = await Promise.all(ids.map(async (id) => ({ id, ...(await this.store.inspect(id)) })));
    return states.flatMap(({ id, holds, waiters }) => [
      ...holds.map(({ owner }) => `${owner} holds ${id}`),
      ...waiters.map(({ owner }) => `${owner} waits for ${id}`),
    ]);
  }

  #closedAndKept(): number {
    return [...watchesOf(this.server)].filter(({ socket }) => socket.closed).length;
  }

  #listenersLeft(): string[] {
    const changed = [...this.#sockets].filter(
      ([socket, before]) =>
        !socket.destroyed && listenersOf(socket).some((count, i) => count > (before[i] ?? 0) + (stay[i] ?? 0)),
    );
    return changed.map(([socket, before]) => `a socket had ${before} listeners, has ${listenersOf(socket)}`);
  }
}

const open = new Set<ServerStage>();

/** To its close and to its timeout. */
const kinds = ['close', 'timeout'];
/** Of ours, for the life of a connection. */
const stay = [1, 1];

function listenersOf(socket: Socket): readonly number[] {
  return kinds.map((name) => socket.listenerCount(name));
}

function recordIds(store: LockStore, ids: Set<string>): void {
  const acquire = store.acquire.bind(store);
  store.acquire = (request, terms) => {
    ids.add(request.id);
    return acquire(request, terms);
  };
}

/** Waits, turn by turn, until nothing is left. */
async function settled(left: () => Promise<string>): Promise<void> {
  const deadline = performance.now() + patienceOfTest();
  for (let found = await left(); found !== ''; found = await left()) {
    if (performance.now() > deadline) throw new Error(`Left behind: ${found}`);
    await turn();
  }
}

/** In a handler: resolves when its own trace says that its client has left. */
export async function clientLeaves(stage: ServerStage): Promise<void> {
  const { signal } = currentTrace() as { signal: AbortSignal };
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  stage.note('first hears');
}
