import { isExecutable, onPath, programOf } from '../processes/executable.ts';

const missing =
  'The tests need a real Redis server, and none was found. Any one of these helps: ' +
  '(1) put redis-server or valkey-server on the PATH; ' +
  '(2) set REDIS_SERVER to the path of the binary; ' +
  '(3) run the tests as root on a Debian-like system, where they install it with apt-get.';

/** The path of a Redis server: `REDIS_SERVER`, else from the PATH, else installed with apt-get. */
export function redisBinary(): string {
  const named = process.env.REDIS_SERVER;
  if (named) {
    if (!isExecutable(named))
      throw new Error(`REDIS_SERVER is '${named}', which is not an executable file. ${missing}`);
    return named;
  }
  return onPath('redis-server') ?? onPath('valkey-server') ?? programOf('redis-server', 'redis-server', missing);
}
