import type { Cluster, Command, Redis } from 'ioredis';
import type { RedisArgument, RedisCommand } from '../driver.ts';

/**
 * Sends `evalsha` on a client; in a cluster, to the server of a slot. The client's own object for a command can do much more than a
 * script needs: with it, a process that makes 64 calls at once needs a sixth more processor time.
 */
export function sendScriptCall(client: Redis | Cluster, command: RedisCommand, slot?: number): Promise<unknown> {
  const { keyPrefix } = client.options;
  const call = new ScriptCall(keyPrefix ? withPrefix(command, keyPrefix) : command, slot);
  return client.sendCommand(call as unknown as Command) as Promise<unknown>;
}

/** The properties of a command that an ioredis client needs, and that tools which watch the client read. */
class ScriptCall {
  readonly name: string;
  readonly promise: Promise<unknown>;
  // Tools replace these two, and call the former ones without `this`.
  resolve!: (reply: unknown) => void;
  reject!: (error: Error) => void;
  /** Set by the client. */
  isTraced = false;
  readonly #command: RedisCommand;
  readonly #slot: number | undefined;

  constructor(command: RedisCommand, slot: number | undefined) {
    this.name = command[0];
    this.#command = command;
    this.#slot = slot;
    this.promise = new Promise((resolve, reject) => {
      this.resolve = (reply) => resolve(textOf(reply));
      this.reject = reject;
    });
  }

  /** The arguments as they are sent. Only tools ask for them, and the client for an error. */
  get args(): readonly RedisArgument[] {
    return this.#command.slice(1);
  }

  /** The client of a cluster sends it to the server that has this slot. */
  getSlot(): number | undefined {
    return this.#slot;
  }

  /** All arguments are ASCII as a rule. One look at the whole text costs less than one at each of them. */
  toWritable(): string {
    const text = encode(this.#command, (word) => word.length);
    return Buffer.byteLength(text) === text.length ? text : encode(this.#command, Buffer.byteLength);
  }

  /** Called by the client with a parser of the reply. Ignored: this class reads every reply of a script. */
  setReplyContext(): void {}

  /** Called by the client with its `commandTimeout`. Ignored: calls of a store have their own deadlines. */
  setTimeout(): void {}
}

function encode(command: RedisCommand, bytesOf: (word: string) => number): string {
  let text = `*${command.length}\r\n`;
  for (const argument of command) {
    const word = String(argument);
    text += `$${bytesOf(word)}\r\n${word}\r\n`;
  }
  return text;
}

/** `evalsha <digest> <number of keys> <keys and arguments>` with the prefix before each key. */
function withPrefix([name, sha1, keyCount, ...rest]: RedisCommand, keyPrefix: string): RedisCommand {
  const keys = Number(keyCount);
  return [name, sha1 as string, keys, ...rest.map((word, place) => (place < keys ? keyPrefix + word : word))];
}

/** A reply with texts instead of bytes. */
function textOf(reply: unknown): unknown {
  if (reply instanceof Buffer) return reply.toString();
  return Array.isArray(reply) ? reply.map(textOf) : reply;
}
