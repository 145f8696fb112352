import { execFileSync, spawn } from 'node:child_process';
import { accessSync, chownSync, constants, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import mysql from 'mysql2/promise';
import { unprivileged } from './account.mjs';
import { usedBy } from './cpu-time.mjs';
import { freePort, superviseServer } from './supervise.mjs';

const debianFolder = '/usr/sbin';

/**
 * Starts a MariaDB server on a free loopback port, in a temporary folder, with a database `locks`. Nothing is forced to the
 * disk, as with the other servers. Returns undefined if there is none.
 */
export async function startMariadb() {
  const binary = find('mariadbd');
  const install = find('mariadb-install-db');
  if (binary === undefined || install === undefined) return undefined;
  const account = unprivileged('mysql');
  const folder = mkdtempSync(join(tmpdir(), 'reenlock-bench-'));
  const data = join(folder, 'data');
  mkdirSync(data);
  if (account !== undefined) for (const path of [folder, data]) chownSync(path, account.uid, account.gid);
  const asAccount = { cwd: folder, ...account, stdio: 'ignore' };
  const common = ['--no-defaults', `--datadir=${data}`];
  execFileSync(install, [...common, '--auth-root-authentication-method=normal', '--skip-test-db'], asAccount);
  const port = await freePort();
  const files = [`--socket=${join(folder, 'socket')}`, `--pid-file=${join(folder, 'pid')}`];
  const settings = ['--bind-address=127.0.0.1', '--skip-name-resolve', '--innodb-flush-log-at-trx-commit=0'];
  const server = spawn(binary, [...common, `--port=${port}`, ...files, ...settings], asAccount);
  const { stop } = await superviseServer(server, { name: 'mariadbd', port, stopSignal: 'SIGTERM' });
  const version = await prepare(port);

  return {
    port,
    description: `MariaDB ${version}`,
    learn: (_name, work) => work(),
    usedBy: (_name, work) => usedBy(server.pid, work),
    async stop() {
      await stop();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Creates the database, and returns the version. The server listens before it accepts connections. */
async function prepare(port) {
  for (;;) {
    try {
      const connection = await mysql.createConnection({ host: '127.0.0.1', port, user: 'root' });
      await connection.query('CREATE DATABASE locks');
      const [[{ version }]] = await connection.query('SELECT VERSION() AS version');
      await connection.end();
      return version.match(/^[\d.]+/)[0];
    } catch (error) {
      if (error.code !== 'ECONNREFUSED' && error.code !== 'PROTOCOL_CONNECTION_LOST') throw error;
      await sleep(20);
    }
  }
}

function find(name) {
  const folders = [...(process.env.PATH ?? '').split(delimiter).filter(Boolean), debianFolder];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
