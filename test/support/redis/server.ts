import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onFreePort } from '../processes/free-port.ts';
import { ended, type Running, started } from '../processes/guarded.ts';
import { redisBinary } from './binary.ts';

export interface RedisOptions {
  /** More command line arguments, e.g. `['--maxmemory', '8mb']`. */
  readonly args?: readonly string[];
  /** Runs it as a Sentinel, with this configuration. */
  readonly sentinel?: string;
  /** A fixed port; without it a free one is found. */
  readonly port?: number;
}

/** A redis-server process of its own: nothing on disk, loopback only. */
export interface RedisServer {
  readonly port: number;
  readonly pid: number;
  readonly url: string;
  /** Ends the process at once (SIGKILL: nothing of it is kept), awaits its exit and removes its folder. */
  stop(): Promise<void>;
  /** Sends the signal (SIGKILL by default) and awaits the exit. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Ends the process in order (SIGTERM, after ten seconds SIGKILL), if it still runs, and starts a new one on the same port. */
  restart(): Promise<void>;
  /** Freezes the process: connections stay open and nothing is answered. */
  pause(): void;
  resume(): void;
}

/** Starts a Redis server and resolves when it answered a PING. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const dir = await mkdtemp(join(tmpdir(), 'reenlock-redis-'));
  const file = join(dir, 'sentinel.conf');
  const first = options.sentinel === undefined ? [] : [file, '--sentinel'];
  const start = (port: number) => startProcess(port, dir, first, options.args ?? []);
  try {
    if (options.sentinel !== undefined) await writeFile(file, options.sentinel);
    const running = options.port === undefined ? await onFreePort(start) : await start(options.port);
    return new LocalRedis(running, start, dir);
  } catch (error) {
    await rm(dir, { recursive: true, force: true });
    throw error;
  }
}

class LocalRedis implements RedisServer {
  readonly port: number;
  readonly url: string;
  readonly #start: (port: number) => Promise<Running>;
  readonly #dir: string;
  #running: Running;

  constructor(running: Running, start: (port: number) => Promise<Running>, dir: string) {
    this.port = running.port;
    this.url = `redis://127.0.0.1:${running.port}`;
    this.#running = running;
    this.#start = start;
    this.#dir = dir;
  }

  get pid(): number {
    return this.#running.child.pid as number;
  }

  async stop(): Promise<void> {
    // An orderly exit takes a tenth of a second.
    await this.kill();
    await rm(this.#dir, { recursive: true, force: true });
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    this.#running.child.kill(signal);
    await this.#running.exited;
  }

  async restart(): Promise<void> {
    await ended(this.#running, 'SIGTERM');
    this.#running = await this.#start(this.port);
  }

  pause(): void {
    this.#running.child.kill('SIGSTOP');
  }

  resume(): void {
    this.#running.child.kill('SIGCONT');
  }
}

async function startProcess(
  port: number,
  dir: string,
  first: readonly string[],
  args: readonly string[],
): Promise<Running> {
  const own = ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', '', '--appendonly', 'no'];
  const child = spawn(redisBinary(), [...first, ...own, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  return started(child, dir, port, /ready to accept connections|sentinel id is/i, ping);
}

async function ping(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  try {
    socket.write('PING\r\n');
    const [reply] = await once(socket, 'data');
    // A server with a password answers, too.
    if (!/^(\+PONG|-NOAUTH)/.test(String(reply))) throw new Error(`Redis answered the PING with ${reply}`);
  } finally {
    socket.destroy();
  }
}
