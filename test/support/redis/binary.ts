import { aptInstall } from '../processes/apt.ts';
import { isExecutable, onPath } from '../processes/executable.ts';

const missing =
  'The tests need a real Redis server, and none was found. Any one of these helps: ' +
  '(1) put redis-server or valkey-server on the PATH; ' +
  '(2) set REDIS_SERVER to the path of the binary; ' +
  '(3) run the tests as root on a Debian-like system, where they install it with apt-get.';

/**
 * The path of a Redis server: `REDIS_SERVER`, else from the PATH, else installed with apt-get.
 * Throws when there is no way to get one; the tests are never skipped.
 */
export function redisBinary(): string {
  const named = process.env.REDIS_SERVER;
  if (named) {
    if (!isExecutable(named))
      throw new Error(`REDIS_SERVER is '${named}', which is not an executable file. ${missing}`);
    return named;
  }
  const binary = onPath('redis-server') ?? onPath('valkey-server') ?? install();
  if (!binary) throw new Error(missing);
  return binary;
}

function install(): string | undefined {
  aptInstall('redis-server', missing);
  return onPath('redis-server');
}
