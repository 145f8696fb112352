import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/**
 * Kills a server, and removes its folder, when this process ends without having stopped it; resolves once the server has
 * ended. A guard waits for the end of its input, which the system closes however this process ends; an 'exit' listener
 * runs neither in a killed process nor in a jest worker. A server's other processes go with the first one, and have a
 * second for it.
 */
export async function guarded(child: ChildProcess, dir: string): Promise<void> {
  const command = 'read _; kill -9 "$0"; sleep 1; rm -rf "$1"';
  const args = ['-c', command, String(child.pid), dir];
  const guard = spawn('sh', args, { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
  guard.unref();
  // 'close' rather than 'exit': it comes after the last output.
  await once(child, 'close');
  guard.kill('SIGKILL');
  await once(guard, 'exit');
}

export interface Running {
  readonly port: number;
  readonly child: ChildProcess;
  readonly exited: Promise<void>;
}

/**
 * Guards a server that was just spawned, and resolves when it can be used: its log has `words`, which shows that it is *this*
 * process which has the port, and `check` has found that it replies there. Rejects with its log if it ends first.
 */
export async function started(
  child: ChildProcess,
  dir: string,
  port: number,
  words: RegExp,
  check: (port: number) => Promise<void> = async () => {},
): Promise<Running> {
  let log = '';
  const isUp = new Promise<void>((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        if (words.test(log)) return;
        log += chunk;
        if (words.test(log)) resolve();
      });
    }
  });
  const exited = guarded(child, dir);
  const failed = exited.then(() => {
    throw new Error(`${child.spawnfile} did not start:\n${log}`);
  });
  failed.catch(() => {}); // It is raced below; later the process ends because a test ends it.
  try {
    await Promise.race([isUp.then(() => check(port)), failed]);
  } catch (error) {
    child.kill('SIGKILL');
    await exited;
    throw error;
  }
  return { port, child, exited };
}

/** Ends a server by a signal, and by SIGKILL if it still runs after ten seconds. */
export async function ended({ child, exited }: Running, signal: NodeJS.Signals): Promise<void> {
  child.kill(signal);
  // A paused process acts on most signals only once it goes on.
  child.kill('SIGCONT');
  const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
  await exited;
  clearTimeout(timer);
}
