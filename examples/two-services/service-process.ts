import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { portOf } from '../orders/listen.ts';

/** A process that runs one of the services; what it says is shown with its name. */
export class ServiceProcess {
  /** Rejects when it ends before it listens. */
  readonly listening: Promise<unknown>;
  readonly #child: ChildProcess;

  constructor(name: 'orders' | 'payments', port: number, env: Readonly<Record<string, string>>) {
    this.#child = fork(join(__dirname, `${name}.ts`), {
      env: { ...process.env, ...env, PORT: String(port) },
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    });
    process.once('exit', () => this.#child.kill());
    const lines = createInterface({ input: this.#child.stdout as Readable });
    lines.on('line', (line) => console.log(`${name.padEnd(9)} ${line}`));
    const ended = once(this.#child, 'exit').then(([code, signal]) => {
      throw new Error(`The ${name} service ended with ${code ?? signal}`);
    });
    this.listening = Promise.race([once(lines, 'line'), ended]);
    this.listening.catch(() => {});
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill();
    await once(this.#child, 'close');
  }
}

/** Each service has to know the other's address before either of them listens. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const port = portOf(server);
  server.close();
  await once(server, 'close');
  return port;
}
