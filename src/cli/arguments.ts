import { parseArgs } from 'node:util';

/** The arguments of `reenlock board`. */
export interface BoardArguments {
  readonly url: URL;
  /** 0: a free one. */
  readonly port: number;
  readonly allowRelease: boolean;
  /** The prefix that the application gave its store. Default: that of the store. */
  readonly prefix: string | undefined;
}

/** The command was called wrongly. */
export class UsageError extends Error {}

export const usage = `Usage: reenlock board [<url>] [options]

Shows who holds and who waits for which lock, on a page that only this machine can open.

  <url>              redis://, rediss:// or postgres:// and the rest of the address of the store's server.
                     Default: the environment variable REENLOCK_URL. Use it for an
                     address with a password: the list of processes shows arguments
  --allow-release    lets the page force-release locks; by default it only shows them
  --port <number>    listens on this port; by default on a free one
  --prefix <text>    the option \`prefix\` that the application gives its RedisStore
  --help             shows this
`;

/** Reads the arguments of the command, and the address from the environment if they have none. Throws a `UsageError`. */
export function readArguments(args: readonly string[], environment: NodeJS.ProcessEnv): BoardArguments | 'help' {
  const { values, positionals } = parsed(args);
  if (values.help) return 'help';
  const [command, address = environment.REENLOCK_URL, ...more] = positionals;
  if (command !== 'board') throw new UsageError(`Expected the command \`board\`, got ${shown(command)}`);
  if (address === undefined)
    throw new UsageError('Expected the URL of a store, as an argument or in REENLOCK_URL, got none');
  if (more.length > 0) throw new UsageError(`Expected one URL, got ${more.length + 1}`);
  return {
    url: urlOf(address),
    port: portOf(values.port),
    allowRelease: values['allow-release'],
    prefix: values.prefix,
  };
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        'allow-release': { type: 'boolean', default: false },
        port: { type: 'string', default: '0' },
        prefix: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** An address may have a password: no message shows more of it than its scheme. */
function urlOf(address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url !== undefined && /^(redis|rediss|postgres|postgresql):$/.test(url.protocol) && url.hostname !== '')
    return url;
  const got = url === undefined ? 'something else' : `one that begins with ${url.protocol}`;
  throw new UsageError(`Expected a URL as redis://127.0.0.1:6379 or postgres://127.0.0.1/shop, got ${got}`);
}

function portOf(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  throw new UsageError(`Expected \`--port\` to be a number from 0 to 65535, got ${shown(text)}`);
}

function shown(text: string | undefined): string {
  return text === undefined ? 'none' : `\`${text}\``;
}
