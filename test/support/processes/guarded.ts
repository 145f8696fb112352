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

/** Guards a server that was just spawned, and resolves when it is `ready`; rejects with what it said if it ends first. */
export async function started(
  child: ChildProcess,
  dir: string,
  port: number,
  ready: (child: ChildProcess, output: readonly string[], port: number) => Promise<void>,
): Promise<Running> {
  const output: string[] = [];
  child.stderr?.on('data', (chunk: Buffer) => output.push(chunk.toString()));
  const exited = guarded(child, dir);
  const failed = exited.then(() => {
    throw new Error(`${child.spawnfile} did not start:\n${output.join('')}`);
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
