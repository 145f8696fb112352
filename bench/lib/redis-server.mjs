import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createConnection, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from './connect.mjs';

const startTimeoutMs = 5_000;

/**
 * Starts a Redis server on a free loopback port, without persistence. The binary is `REDIS_SERVER`, else the
 * `redis-server` on the path. `admin` is a connection for looking at the server; `stop()` ends that very process.
 */
export async function startRedis() {
  const binary = process.env.REDIS_SERVER || 'redis-server';
  const port = await freePort();
  const options = ['--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', tmpdir()];
  const server = spawn(binary, options.map(String), { stdio: 'ignore' });
  const failed = new Promise((_, reject) => {
    server.once('error', (cause) => reject(new Error(`Cannot start ${binary}; set REDIS_SERVER`, { cause })));
    server.once('exit', (code) => reject(new Error(`${binary} ended with code ${code}`)));
  });
  const killAtExit = () => server.kill('SIGKILL');
  process.once('exit', killAtExit);

  await Promise.race([listening(port), failed]);
  // Thrown for nobody to catch: without its server a run would go on to wait for answers.
  const endRun = (code, signal) => {
    throw new Error(`${binary} ended in the midst of the run, with ${code ?? signal}`);
  };
  server.once('exit', endRun);
  const admin = await connect(port);

  async function stop() {
    await admin.quit();
    server.off('exit', endRun);
    const ended = once(server, 'exit');
    server.kill('SIGTERM');
    await ended;
    process.off('exit', killAtExit);
  }
  return { port, admin, stop, version: (await admin.info('server')).match(/redis_version:(\S+)/)[1] };
}

/** How often the server has run a command, by INFO commandstats. */
export async function callsOf(admin, command) {
  const stats = await admin.info('commandstats');
  return Number(stats.match(new RegExp(`cmdstat_${command}:calls=(\\d+)`))?.[1] ?? 0);
}

/** How many commands the server has run in all, those inside scripts included. */
export async function commandsProcessed(admin) {
  return Number((await admin.info('stats')).match(/total_commands_processed:(\d+)/)[1]);
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

async function listening(port) {
  const deadline = Date.now() + startTimeoutMs;
  while (Date.now() < deadline) {
    const socket = createConnection(port, '127.0.0.1');
    const connected = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (connected) return;
    await sleep(20);
  }
  throw new Error(`Redis did not listen within ${startTimeoutMs} ms`);
}
