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
