import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { handOver } from '../processes/account.ts';
import { programOf } from '../processes/executable.ts';
import { onFreePort } from '../processes/free-port.ts';
import { ended, started } from '../processes/guarded.ts';
import { type PostgresServer, postgresAccount } from './server.ts';

const missing =
  'The tests need PgBouncer, and it was not found. Either put pgbouncer on the PATH, or run the tests as root on a ' +
  'Debian-like system, where they install it with apt-get.';

/** A PgBouncer before a server, on a loopback port of its own. */
export interface PgBouncer {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts a PgBouncer that lends its connections for a transaction, or for a session. */
export async function startPgBouncer(server: PostgresServer, mode: 'transaction' | 'session'): Promise<PgBouncer> {
  const dir = await mkdtemp(join(tmpdir(), 'reenlock-pgbouncer-'));
  const account = postgresAccount();
  handOver(dir, account);
  const bouncer = await onFreePort(async (port) => {
    const settings = [
      '[databases]',
      `postgres = host=127.0.0.1 port=${server.port} dbname=postgres user=postgres`,
      '[pgbouncer]',
      `listen_addr = 127.0.0.1`,
      `listen_port = ${port}`,
      'unix_socket_dir =',
      'auth_type = any',
      `pool_mode = ${mode}`,
      'default_pool_size = 5',
      'ignore_startup_parameters = extra_float_digits',
    ];
    const file = join(dir, 'pgbouncer.ini');
    await writeFile(file, settings.join('\n'));
    const child = spawn(programOf('pgbouncer', 'pgbouncer', missing, ['/usr/sbin']), [file], {
      cwd: dir,
      stdio: ['ignore', 'ignore', 'pipe'],
      ...account,
    });
    return started(child, dir, port, /process up/);
  });
  return {
    url: `postgres://postgres@127.0.0.1:${bouncer.port}/postgres`,
    async stop() {
      await ended(bouncer, 'SIGTERM');
      await rm(dir, { recursive: true, force: true });
    },
  };
}
