import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { type Account, handOver, unprivileged } from '../processes/account.ts';
import { onFreePort } from '../processes/free-port.ts';
import { ended, type Running, started } from '../processes/guarded.ts';
import { fillFromTemplate } from '../processes/template.ts';
import { postgresBin } from './binary.ts';

/** A PostgreSQL server of its own: a new cluster in a temporary folder, loopback only, nothing forced to the disk. */
export interface PostgresServer {
  readonly port: number;
  readonly pid: number;
  /** Of its superuser, who needs no password. */
  readonly url: string;
  /** Ends the processes (SIGINT: at once, in order; after ten seconds SIGKILL), awaits the exit and removes the folder. */
  stop(): Promise<void>;
  /** Ends the processes as a crash does, and awaits the exit. */
  kill(): Promise<void>;
  /** Stops all processes until `resume`. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Ends the processes, if they still run, and starts new ones on the same port and the same data. */
  restart(): Promise<void>;
}

const run = promisify(execFile);

/**
 * Starts a PostgreSQL server and resolves when it answered a query. With `keepsCommits`, what was committed is there after
 * a `kill`; without, the last commits may be gone.
 */
export async function startPostgres({
  keepsCommits = false,
}: {
  keepsCommits?: boolean;
} = {}): Promise<PostgresServer> {
  const dir = await mkdtemp(join(tmpdir(), 'reenlock-postgres-'));
  const account = postgresAccount();
  try {
    handOver(dir, account);
    initialise(dir, account);
    const settings = { synchronous_commit: keepsCommits ? 'on' : 'off', full_page_writes: 'off' };
    const start = (port: number) => startProcess(port, dir, account, settings);
    return new LocalPostgres(dir, start, await onFreePort(start));
  } catch (error) {
    await rm(dir, { recursive: true, force: true });
    throw error;
  }
}

/** The processes of a server; `child` is the first one of them. */
class LocalPostgres implements PostgresServer {
  readonly port: number;
  readonly url: string;
  readonly #dir: string;
  readonly #start: (port: number) => Promise<Running>;
  #running: Running;

  constructor(dir: string, start: (port: number) => Promise<Running>, running: Running) {
    this.port = running.port;
    this.url = urlOf(running.port);
    this.#dir = dir;
    this.#start = start;
    this.#running = running;
  }

  get pid(): number {
    return this.#running.child.pid as number;
  }

  async stop(): Promise<void> {
    await ended(this.#running, 'SIGINT');
    await rm(this.#dir, { recursive: true, force: true });
  }

  async kill(): Promise<void> {
    this.#running.child.kill('SIGQUIT');
    await this.#running.exited;
  }

  pause(): Promise<void> {
    return stopAll(this.#running);
  }

  resume(): Promise<void> {
    return continueAll(this.#running);
  }

  async restart(): Promise<void> {
    await ended(this.#running, 'SIGINT');
    this.#running = await this.#start(this.port);
  }
}

/** The user as whom PostgreSQL and PgBouncer run. The package is installed first: it makes the user. */
export function postgresAccount(): Account | undefined {
  postgresBin();
  return unprivileged('postgres');
}

/** Puts a new cluster of databases into the folder `data` of `dir`. */
export function initialise(dir: string, account: Account | undefined): void {
  const initdb = join(postgresBin(), 'initdb');
  fillFromTemplate(dir, initdb, account, (made) => {
    const args = ['-D', join(made, 'data'), '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
    const { status, stderr } = spawnSync(initdb, args, { cwd: made, encoding: 'utf8', ...account });
    if (status !== 0) throw new Error(`initdb failed (exit code ${status}):\n${stderr}`);
  });
}

/** Starts the processes of a cluster of databases, and resolves when they answer. */
export async function startProcess(
  port: number,
  dir: string,
  account: Account | undefined,
  more: Readonly<Record<string, string>>,
): Promise<Running> {
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    fsync: 'off',
    autovacuum: 'off',
    ...more,
  };
  const args = ['-D', join(dir, 'data'), '-p', String(port)];
  for (const [name, value] of Object.entries(settings)) args.push('-c', `${name}=${value}`);
  const child = spawn(join(postgresBin(), 'postgres'), args, {
    cwd: dir,
    stdio: ['ignore', 'ignore', 'pipe'],
    ...account,
  });
  // A standby accepts "read-only connections".
  return started(child, dir, port, /system is ready to accept/, ready);
}

/** Stops all processes of a server, until `continueAll`. The first one first: it would start others. */
export async function stopAll({ child }: Running): Promise<void> {
  child.kill('SIGSTOP');
  for (const pid of await childrenOf(child)) signal(pid, 'SIGSTOP');
}

export async function continueAll({ child }: Running): Promise<void> {
  for (const pid of await childrenOf(child)) signal(pid, 'SIGCONT');
  child.kill('SIGCONT');
}

async function childrenOf({ pid: parent }: ChildProcess): Promise<number[]> {
  const { stdout } = await run('ps', ['-A', '-o', 'pid=,ppid=']);
  const lines = stdout.split('\n').map((line) => line.trim().split(/\s+/).map(Number));
  return lines.filter(([, of]) => of === parent).map(([pid]) => pid as number);
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    // It has ended in between.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

async function ready(port: number): Promise<void> {
  const client = new Client({ connectionString: urlOf(port) });
  await client.connect();
  await client.query('SELECT 1');
  await client.end();
}

/** The address of a server for its superuser, who needs no password. */
export function urlOf(port: number): string {
  return `postgres://postgres@127.0.0.1:${port}/postgres`;
}
