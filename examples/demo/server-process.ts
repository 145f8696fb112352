import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Moment, Variant } from './moments.ts';

/** A process that runs `server.ts`. */
export class ServerProcess {
  readonly ports: Readonly<Record<Variant, number>>;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, ports: Readonly<Record<Variant, number>>) {
    this.#child = child;
    this.ports = ports;
  }

  static async start(units: number, run: string): Promise<ServerProcess> {
    const child = fork(join(__dirname, 'server.ts'), [String(units), run], {
      env: { ...process.env, PORT: '0' },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    return new ServerProcess(child, await message(child));
  }

  /** Ends it, and answers what it saw. */
  async stop(): Promise<Moment[]> {
    this.#child.send('stop');
    return message(this.#child);
  }
}

async function message<T>(child: ChildProcess): Promise<T> {
  const death = new AbortController();
  const onExit = (code: number | null): void => death.abort(new Error(`A server process ended with code ${code}`));
  child.once('exit', onExit);
  try {
    const [received] = await once(child, 'message', { signal: death.signal });
    return received as T;
  } catch {
    throw death.signal.reason;
  } finally {
    child.off('exit', onExit);
  }
}
