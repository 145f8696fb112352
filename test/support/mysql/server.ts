import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createConnection } from 'mysql2/promise';
import { type Account, handOver, unprivileged } from '../processes/account.ts';
import { onFreePort } from '../processes/free-port.ts';
import { ended, type Running, started } from '../processes/guarded.ts';
import { fillFromTemplate } from '../processes/template.ts';
import { mariadbBinary } from './binary.ts';

/** A MariaDB server of its own: new data in a temporary folder, loopback only, nothing forced to the disk. */
export interface MariadbServer {
  readonly port: number;
  /** Of its superuser, who needs no password, with the database `locks`. */
  readonly url: string;
  /** Ends the process (SIGTERM; after ten seconds SIGKILL), awaits the exit and removes the folder. */
  stop(): Promise<void>;
  /** Ends the process as a crash does, and awaits the exit. */
  kill(): Promise<void>;
  /** Stops the process until `resume`. */
  pause(): void;
  resume(): void;
  /** Ends the process, if it still runs, and starts a new one on the same port and the same data. */
  restart(): Promise<void>;
}

/** A small log, which is copied with each new server. */
const logSize = '--innodb-log-file-size=8M';

/** Starts a MariaDB server with these settings, and resolves when it answers. */
export async function startMariadb(settings: readonly string[] = []): Promise<MariadbServer> {
  const dir = await mkdtemp(join(tmpdir(), 'reenlock-mariadb-'));
  // The package is installed first: it makes the user.
  mariadbBinary('mariadbd');
  const account = unprivileged('mysql');
  try {
    handOver(dir, account);
    initialise(dir, account);
    const start = (port: number) => startProcess(port, dir, account, settings);
    let running = await onFreePort(start);
    return {
      port: running.port,
      url: urlOf(running.port),
      kill: () => ended(running, 'SIGKILL'),
      pause: () => void running.child.kill('SIGSTOP'),
      resume: () => void running.child.kill('SIGCONT'),
      async stop() {
        await ended(running, 'SIGTERM');
        await rm(dir, { recursive: true, force: true });
      },
      async restart() {
        await ended(running, 'SIGTERM');
        running = await start(running.port);
      },
    };
  } catch (error) {
    await rm(dir, { recursive: true, force: true });
    throw error;
  }
}

function initialise(dir: string, account: Account | undefined): void {
  const installer = mariadbBinary('mariadb-install-db');
  fillFromTemplate(dir, installer, account, (made) => {
    const data = join(made, 'data');
    mkdirSync(data);
    handOver(data, account);
    const ours = ['--auth-root-authentication-method=normal', '--skip-test-db', logSize];
    const args = ['--no-defaults', `--datadir=${data}`, ...ours];
    const { status, stdout, stderr } = spawnSync(installer, args, { cwd: made, encoding: 'utf8', ...account });
    if (status !== 0) throw new Error(`mariadb-install-db failed (exit code ${status}):\n${stdout}\n${stderr}`);
  });
}

async function startProcess(
  port: number,
  dir: string,
  account: Account | undefined,
  settings: readonly string[],
): Promise<Running> {
  const args = [
    '--no-defaults',
    `--datadir=${join(dir, 'data')}`,
    `--port=${port}`,
    '--bind-address=127.0.0.1',
    `--socket=${join(dir, 'socket')}`,
    `--pid-file=${join(dir, 'pid')}`,
    '--skip-name-resolve',
    '--innodb-flush-log-at-trx-commit=0',
    '--innodb-buffer-pool-size=16M',
    logSize,
    ...settings,
  ];
  const child = spawn(mariadbBinary('mariadbd'), args, { cwd: dir, stdio: ['ignore', 'ignore', 'pipe'], ...account });
  return started(child, dir, port, /ready for connections/, ready);
}

async function ready(port: number): Promise<void> {
  const connection = await createConnection({ host: '127.0.0.1', port, user: 'root' });
  await connection.query('CREATE DATABASE IF NOT EXISTS locks');
  await connection.end();
}

function urlOf(port: number): string {
  return `mysql://root@127.0.0.1:${port}/locks`;
}
