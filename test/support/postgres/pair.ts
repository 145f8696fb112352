import { execFile } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { type Account, handOver } from '../processes/account.ts';
import { onFreePort } from '../processes/free-port.ts';
import type { Running } from '../processes/guarded.ts';
import { TcpProxy } from '../processes/tcp-proxy.ts';
import { until } from '../until.ts';
import { postgresBin } from './binary.ts';
import { continueAll, initialise, postgresAccount, startProcess, stopAll, urlOf } from './server.ts';

const run = promisify(execFile);
const account: Account | undefined = postgresAccount();
/** A small server, of which a copy is made in a moment. */
const settings = { synchronous_commit: 'on', shared_buffers: '16MB', wal_keep_size: '256MB', max_wal_size: '256MB' };

/** One of the two servers. */
export class PostgresNode {
  readonly #dir: string;
  #running: Running;

  private constructor(dir: string, running: Running) {
    this.#dir = dir;
    this.#running = running;
  }

  /** `fill` puts a cluster of databases into the folder. */
  static async start(fill: (dir: string) => unknown): Promise<PostgresNode> {
    const dir = await mkdtemp(join(tmpdir(), 'reenlock-postgres-'));
    handOver(dir, account);
    try {
      await fill(dir);
      return new PostgresNode(dir, await onFreePort((port) => startProcess(port, dir, account, settings)));
    } catch (error) {
      await rm(dir, { recursive: true, force: true });
      throw error;
    }
  }

  get port(): number {
    return this.#running.port;
  }

  get url(): string {
    return urlOf(this.port);
  }

  /** Ends its first process by SIGKILL; the others see that, and end. */
  async kill(): Promise<void> {
    this.#running.child.kill('SIGKILL');
    await this.#running.exited;
  }

  /** Starts it again after a `kill`, on its own data. */
  async restart(): Promise<void> {
    this.#running = await startProcess(this.port, this.#dir, account, settings);
  }

  /** Stops all of its processes, until `resume`. */
  pause(): Promise<void> {
    return stopAll(this.#running);
  }

  resume(): Promise<void> {
    return continueAll(this.#running);
  }

  async remove(): Promise<void> {
    if (this.#running.child.exitCode === null && this.#running.child.signalCode === null) await this.kill();
    await rm(this.#dir, { recursive: true, force: true, maxRetries: 10 });
  }

  async query<T extends object>(text: string): Promise<T[]> {
    const client = new Client({ connectionString: this.url });
    client.on('error', () => {}); // Its query reports it.
    await client.connect();
    try {
      return (await client.query<T>(text)).rows;
    } finally {
      await client.end();
    }
  }
}

/** A program beside `postgres`, which may be a link. */
function program(name: string): string {
  return join(dirname(realpathSync(join(postgresBin(), 'postgres'))), name);
}

/** A primary, and a standby that receives what the primary writes: with `isSynchronous` before a commit is reported. */
export class PostgresPair {
  primary: PostgresNode;
  standby: PostgresNode | undefined;
  /** Between the standby and the primary. */
  readonly #link: TcpProxy;
  readonly #isSynchronous: boolean;

  private constructor(primary: PostgresNode, link: TcpProxy, isSynchronous: boolean) {
    this.primary = primary;
    this.#link = link;
    this.#isSynchronous = isSynchronous;
  }

  static async start({ isSynchronous }: { isSynchronous: boolean }): Promise<PostgresPair> {
    const primary = await PostgresNode.start((dir) => initialise(dir, account));
    const pair = new PostgresPair(primary, await TcpProxy.start(primary.port, 'any'), isSynchronous);
    try {
      await pair.addStandby();
      return pair;
    } catch (error) {
      await pair.stop();
      throw error;
    }
  }

  /** From here on the standby receives nothing. */
  cutOff(): void {
    this.#link.cutOff();
  }

  /** From here on the standby is the primary, without a standby. Returns the former primary. */
  async promote(): Promise<PostgresNode> {
    const [former, next] = [this.primary, this.standby as PostgresNode];
    // It waits for no standby of its own: it was copied before the former primary did.
    await next.query('SELECT pg_promote()');
    this.primary = next;
    this.standby = undefined;
    return former;
  }

  /** Adds a standby, a copy of the primary; resolves when it has received all, and the primary waits for it. */
  async addStandby(): Promise<void> {
    this.#link.heal();
    this.#link.lead(this.primary.port);
    this.#link.cut();
    this.standby = await PostgresNode.start(async (dir) => {
      const from = ['-h', '127.0.0.1', '-p', String(this.primary.port), '-U', 'postgres'];
      const data = join(dir, 'data');
      await run(program('pg_basebackup'), [...from, '-D', data, '-c', 'fast', '--no-sync'], {
        ...account,
        cwd: dir,
      });
      const link = `host=127.0.0.1 port=${this.#link.port} user=postgres application_name=standby`;
      await appendFile(join(data, 'postgresql.auto.conf'), `primary_conninfo = '${link}'\n`);
      await writeFile(join(data, 'standby.signal'), '');
    });
    if (this.#isSynchronous) {
      await this.primary.query(`ALTER SYSTEM SET synchronous_standby_names = 'standby'`);
      await this.primary.query('SELECT pg_reload_conf()');
    }
    const wanted = this.#isSynchronous ? 'sync' : 'async';
    await until(async () => {
      const [one] = await this.primary.query<{ sync_state: string; state: string }>(
        'SELECT * FROM pg_stat_replication',
      );
      return one?.state === 'streaming' && one.sync_state === wanted;
    });
  }

  async stop(): Promise<void> {
    await this.standby?.remove();
    await this.primary.remove();
    await this.#link.stop();
  }
}
