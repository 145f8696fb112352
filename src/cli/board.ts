import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { userInfo } from 'node:os';
import { createLocks, type Locks } from '../core/index.ts';
import type { BoardArguments } from './arguments.ts';
import { createBoardServer } from './server.ts';
import { openStore } from './store.ts';

/** Shows the board of a store until SIGINT or SIGTERM. Rejects if the store or the port can't be had. */
export async function runBoard(asked: BoardArguments): Promise<void> {
  const opened = openStore(asked);
  try {
    await opened.connect().catch((error: unknown) => {
      throw new Error(`Expected a server at ${shownUrl(asked.url)}, got ${reasonOf(error)}`);
    });
    await showBoard(createLocks({ store: opened.store }), asked);
  } finally {
    await opened.close();
  }
}

async function showBoard(locks: Locks, asked: BoardArguments): Promise<void> {
  try {
    const user = { name: userInfo().username, mayForceRelease: asked.allowRelease };
    const { server, token } = createBoardServer(locks, user);
    const port = await listen(server, asked.port);
    const what = asked.allowRelease ? 'Shows and releases' : 'Shows';
    process.stdout.write(`${what} the locks at ${shownUrl(asked.url)}. Open this address; it works once:\n`);
    process.stdout.write(`http://127.0.0.1:${port}/?token=${token}\n`);
    await signalled();
    server.close();
    server.closeAllConnections();
  } finally {
    await locks.close({ drainMs: 0 });
  }
}

async function listen(server: Server, port: number): Promise<number> {
  server.listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch (error) {
    throw new Error(`Expected port ${port} to be free, got ${reasonOf(error)}. Choose another one with \`--port\``);
  }
  return (server.address() as AddressInfo).port;
}

async function signalled(): Promise<void> {
  const over = new AbortController();
  const { signal } = over;
  await Promise.race(['SIGINT', 'SIGTERM'].map((name) => once(process, name, { signal })));
  over.abort();
}

/** An address without user and password, for the terminal. */
function shownUrl({ protocol, host, pathname }: URL): string {
  return `${protocol}//${host}${pathname}`;
}

function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: string; message: string };
  return code ?? message;
}
