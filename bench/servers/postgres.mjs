import { execFileSync, spawn } from 'node:child_process';
import { accessSync, chownSync, constants, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { unprivileged } from './account.mjs';
import { usedBy } from './cpu-time.mjs';
import { freePort, superviseServer } from './supervise.mjs';

const debianFolder = '/usr/lib/postgresql';
const startingUp = '57P03';
const settings = ['max_connections=200', 'fsync=off', 'synchronous_commit=off', 'full_page_writes=off'];

/**
 * Starts a PostgreSQL server on a free loopback port, in a temporary folder. Nothing is forced to the disk, as with the
 * Redis server. The folder of `postgres` and `initdb` is `POSTGRES_BIN`, or else it is looked for on the path and where
 * Debian has it. Returns undefined if there is none.
 */
export async function startPostgres() {
  const bin = folderOfBinaries();
  if (bin === undefined) return undefined;
  const account = unprivileged('postgres');
  const folder = mkdtempSync(join(tmpdir(), 'reenlock-bench-'));
  if (account !== undefined) chownSync(folder, account.uid, account.gid);
  const data = join(folder, 'data');
  const asAccount = { cwd: folder, ...account, stdio: 'ignore' };
  execFileSync(join(bin, 'initdb'), ['-D', data, '-U', 'postgres', '-A', 'trust', '--no-sync'], asAccount);
  const port = await freePort();
  const options = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', ...settings];
  const args = ['-D', data, '-p', String(port), ...options.flatMap((option) => ['-c', option])];
  const server = spawn(join(bin, 'postgres'), args, asAccount);
  const { stop } = await superviseServer(server, { name: 'postgres', port, stopSignal: 'SIGINT' });
  await ready(port);
  const version = readFileSync(join(data, 'PG_VERSION'), 'utf8').trim();

  return {
    port,
    description: `PostgreSQL ${version}`,
    learn: (_name, work) => work(),
    usedBy: (_name, work) => usedBy(server.pid, work),
    async stop() {
      await stop();
      rmSync(folder, { recursive: true });
    },
  };
}

/** It listens before it accepts connections. */
async function ready(port) {
  for (;;) {
    const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' });
    try {
      await client.connect();
      return await client.end();
    } catch (error) {
      if (error.code !== startingUp) throw error;
      await sleep(20);
    }
  }
}

function folderOfBinaries() {
  const named = process.env.POSTGRES_BIN;
  if (named) return named;
  return [...(process.env.PATH ?? '').split(delimiter), ...debianFolders()].filter(Boolean).find(hasBinaries);
}

function debianFolders() {
  try {
    return readdirSync(debianFolder).map((version) => join(debianFolder, version, 'bin'));
  } catch {
    return [];
  }
}

function hasBinaries(folder) {
  try {
    for (const name of ['postgres', 'initdb']) accessSync(join(folder, name), constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
