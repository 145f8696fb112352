import type { Command, Redis } from 'ioredis';
import type { RedisArgument, RedisCommand, RedisReplies } from '../driver.ts';

/**
 * Sends `evalsha` on a client. The client's own object for a command can do much more than a store needs: with it, a process
 * that makes 64 calls at once needs a sixth more processor time.
 */
export function sendStoreCommand(client: Redis, command: RedisCommand): Promise<unknown> {
  let resolve!: (reply: unknown) => void;
  let reject!: (error: Error) => void;
  const promise = new Promise((onReply, onError) => {
    resolve = onReply;
    reject = onError;
  });
  return send(client, new StoreCommand(client, command, promise, resolve, reject));
}

/**
 * Sends commands whose first argument is their only key, and returns what each came to. A write of its own for each would
 * cost the process a third more.
 */
export function sendStoreCommands(client: Redis, commands: readonly RedisCommand[]): Promise<RedisReplies> {
  const replies: PromiseSettledResult<unknown>[] = [];
  let open = commands.length;
  let resolve!: (replies: RedisReplies) => void;
  const promise = new Promise<RedisReplies>((onReplies) => {
    resolve = onReplies;
  });
  const write = new JointWrite(client);
  for (const [place, command] of commands.entries()) {
    const settle = (reply: PromiseSettledResult<unknown>): void => {
      if (replies[place] !== undefined) return;
      replies[place] = reply;
      open -= 1;
      if (open === 0) resolve(replies);
    };
    const onReply = (value: unknown): void => settle({ status: 'fulfilled', value });
    const onError = (reason: Error): void => settle({ status: 'rejected', reason });
    const sent = send(client, new StoreCommand(client, command, promise, onReply, onError), write);
    // Of a tool that watches the client, and may refuse the command.
    if (sent !== promise) sent.catch(onError);
  }
  write.flush();
  return promise;
}

function send(client: Redis, command: StoreCommand, write?: JointWrite): Promise<unknown> {
  return client.sendCommand(command as unknown as Command, write as unknown as Redis['stream']) as Promise<unknown>;
}

/** The client takes it for the stream to write commands to. */
class JointWrite {
  readonly #client: Redis;
  /** What is not written yet; undefined after that. */
  #text: string | undefined = '';

  constructor(client: Redis) {
    this.#client = client;
  }

  /** After the first write, it is called for each command that the client sends again. */
  write(text: string): void {
    if (this.#text === undefined) this.#client.stream.write(text);
    else this.#text += text;
  }

  flush(): void {
    const text = this.#text;
    this.#text = undefined;
    if (text) this.#client.stream.write(text);
  }
}

/** What an ioredis client needs of a command that it sends, and what tools that watch the client read. */
class StoreCommand {
  readonly name: string;
  readonly promise: Promise<unknown>;
  // Tools replace these two, and call the former ones without `this`.
  resolve: (reply: unknown) => void;
  reject: (error: Error) => void;
  /** Set by the client. */
  isTraced = false;
  readonly #command: RedisCommand;

  constructor(
    client: Redis,
    command: RedisCommand,
    promise: Promise<unknown>,
    onReply: (reply: unknown) => void,
    onError: (error: Error) => void,
  ) {
    const { keyPrefix } = client.options;
    this.name = command[0];
    this.promise = promise;
    this.resolve = (reply) => onReply(textOf(reply));
    this.reject = onError;
    this.#command = keyPrefix ? withPrefix(command, keyPrefix) : command;
  }

  /** The arguments as they are sent. Only tools ask for them, and the client for an error. */
  get args(): readonly RedisArgument[] {
    return this.#command.slice(1);
  }

  toWritable(): string {
    let text = `*${this.#command.length}\r\n`;
    for (const argument of this.#command) {
      const word = String(argument);
      text += `$${Buffer.byteLength(word)}\r\n${word}\r\n`;
    }
    return text;
  }

  /** The client would say how to read the reply: this reads all that a store asks for. */
  setReplyContext(): void {}

  /** The client would set its `commandTimeout`: calls of a store have deadlines of their own. */
  setTimeout(): void {}
}

/** The command with the prefix before each key. `evalsha` has a digest and the number of keys before them. */
function withPrefix([name, ...words]: RedisCommand, keyPrefix: string): RedisCommand {
  const [first, end] = name === 'evalsha' ? [2, 2 + Number(words[1])] : [0, 1];
  return [name, ...words.map((word, place) => (place >= first && place < end ? keyPrefix + word : word))];
}

/** A reply with texts in place of bytes. */
function textOf(reply: unknown): unknown {
  if (reply instanceof Buffer) return reply.toString();
  return Array.isArray(reply) ? reply.map(textOf) : reply;
}
