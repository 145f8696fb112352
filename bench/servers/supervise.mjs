import { once } from 'node:events';
import { createConnection, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const startTimeoutMs = 20_000;

/** A loopback port that nobody listened on a moment ago. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/**
 * Resolves when the server process listens on the port, and rejects if it ends before. If it ends later without `stop`,
 * the whole run ends: it would wait for replies for ever. The process never outlives this one.
 */
export async function superviseServer(server, { name, port, stopSignal }) {
  const killAtExit = () => server.kill('SIGKILL');
  process.once('exit', killAtExit);
  const ended = new Promise((resolve) => {
    server.once('error', (error) => resolve(new Error(`Cannot start ${name}`, { cause: error })));
    server.once('exit', (code, signal) => resolve(new Error(`${name} ended with ${code ?? signal}`)));
  });
  const error = await Promise.race([listening(port, name), ended]);
  if (error !== undefined) throw error;

  // Thrown where nothing catches it, so that it ends the run.
  const endRun = (code, signal) => {
    throw new Error(`${name} ended during the run, with ${code ?? signal}`);
  };
  server.once('exit', endRun);
  return {
    async stop() {
      server.off('exit', endRun);
      server.kill(stopSignal);
      await ended;
      process.off('exit', killAtExit);
    },
  };
}

async function listening(port, name) {
  const deadline = Date.now() + startTimeoutMs;
  while (Date.now() < deadline) {
    const socket = createConnection(port, '127.0.0.1');
    const isConnected = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isConnected) return;
    await sleep(20);
  }
  throw new Error(`${name} did not listen within ${startTimeoutMs} ms`);
}
