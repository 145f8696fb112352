import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createConnection } from 'mysql2/promise';
import { onFreePort } from '../processes/free-port.ts';
import { guarded } from '../processes/guarded.ts';
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
  /** Ends the process, if it still runs, and starts a new one on the same port and the same data. */
  restart(): Promise<void>;
}

const stopMs = 10_000;

/** Starts a MariaDB server with these settings, and resolves when it answers. */
export async function startMariadb(settings: readonly string[] = []): Promise<MariadbServer> {
  const dir = await mkdtemp(join(tmpdir(), 'reenlock-mariadb-'));
  const account = unprivileged();
  try {
    await mkdir(join(dir, 'data'));
    for (const path of [dir, join(dir, 'data')]) if (account) await chown(path, account.uid, account.gid);
    initialise(dir, account);
    const start = (port: number) => startProcess(port, dir, account, settings);
    let running = await onFreePort(start);
    const end = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
      running.child.kill(signal);
      const timer = setTimeout(() => running.child.kill('SIGKILL'), stopMs);
      await running.exited;
      clearTimeout(timer);
    };
    return {
      port: running.port,
      url: urlOf(running.port),
      kill: () => end('SIGKILL'),
      async stop() {
        await end('SIGTERM');
        await rm(dir, { recursive: true, force: true });
      },
      async restart() {
        await end('SIGTERM');
        running = await start(running.port);
      },
    };
  } catch (error) {
    await rm(dir, { recursive: true, force: true });
    throw error;
  }
}

interface Account {
  readonly uid: number;
  readonly gid: number;
}

interface RunningMariadb {
  readonly port: number;
  readonly child: ChildProcess;
  readonly exited: Promise<void>;
}

/** MariaDB refuses to run as root: then it runs as the user that the package made. */
function unprivileged(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  // First the package, then its user.
  mariadbBinary('mariadbd');
  const [uid, gid] = ['-u', '-g'].map((flag) => Number(spawnSync('id', [flag, 'mysql'], { encoding: 'utf8' }).stdout));
  if (!uid || !gid) throw new Error('Run as root, the tests need the user `mysql` to run MariaDB as');
  return { uid, gid };
}

function initialise(dir: string, account: Account | undefined): void {
  const args = ['--no-defaults', `--datadir=${join(dir, 'data')}`, '--auth-root-authentication-method=normal'];
  const options = { cwd: dir, encoding: 'utf8', ...account } as const;
  const { status, stdout, stderr } = spawnSync(
    mariadbBinary('mariadb-install-db'),
    [...args, '--skip-test-db'],
    options,
  );
  if (status !== 0) throw new Error(`mariadb-install-db failed (exit code ${status}):\n${stdout}\n${stderr}`);
}

async function startProcess(
  port: number,
  dir: string,
  account: Account | undefined,
  settings: readonly string[],
): Promise<RunningMariadb> {
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
    ...settings,
  ];
  const child = spawn(mariadbBinary('mariadbd'), args, { cwd: dir, stdio: ['ignore', 'ignore', 'pipe'], ...account });
  const output: string[] = [];
  child.stderr.on('data', (chunk: Buffer) => output.push(chunk.toString()));
  const exited = guarded(child, dir);
  const failed = exited.then(() => {
    throw new Error(`mariadbd did not start:\n${output.join('')}`);
  });
  failed.catch(() => {}); // It is raced below; later the process ends because a test ends it.
  try {
    await Promise.race([ready(child, output, port), failed]);
  } catch (error) {
    child.kill('SIGKILL');
    await exited;
    throw error;
  }
  return { port, child, exited };
}

/** The log line says that it is *this* process which has the port; the statement, that it answers there. */
async function ready(child: ChildProcess, output: readonly string[], port: number): Promise<void> {
  while (!output.join('').includes('ready for connections')) await once(child.stderr as NodeJS.ReadableStream, 'data');
  const connection = await createConnection({ host: '127.0.0.1', port, user: 'root' });
  await connection.query('CREATE DATABASE IF NOT EXISTS locks');
  await connection.end();
}

function urlOf(port: number): string {
  return `mysql://root@127.0.0.1:${port}/locks`;
}
