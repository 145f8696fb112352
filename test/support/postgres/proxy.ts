import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

interface LostReply {
  readonly words: string;
  readonly then: 'cut' | 'hang';
  readonly happened: () => void;
}

/**
 * Stands between clients and a PostgreSQL server, and spoils what goes through: connections are reset, go half-open, or lose
 * a reply after the server has done what was asked.
 */
export class PostgresProxy {
  readonly #target: number;
  readonly #server: Server;
  readonly #pipes = new Set<Pipe>();
  #lostReplies: LostReply[] = [];
  #isCut = false;
  #isMute = false;

  private constructor(target: number) {
    this.#target = target;
    this.#server = createServer((socket) => this.#accept(socket));
  }

  /** Listens on a free loopback port. */
  static async start(target: number): Promise<PostgresProxy> {
    const proxy = new PostgresProxy(target);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.port}/postgres`;
  }

  /** How many connections go through. */
  get size(): number {
    return this.#pipes.size;
  }

  async stop(): Promise<void> {
    this.cutOff();
    this.#server.close();
    await once(this.#server, 'close');
  }

  /** From here on, all goes well for new connections. */
  heal(): void {
    this.#lostReplies = [];
    this.#isCut = false;
    this.#isMute = false;
  }

  /** The next statement that has these words is executed, and its reply never arrives. Resolves when that has happened. */
  loseReply(words: string, then: 'cut' | 'hang' = 'cut'): Promise<void> {
    return new Promise((happened) => {
      this.#lostReplies.push({ words, then, happened });
    });
  }

  /** Ends every connection now, with a reset. */
  cut(): void {
    for (const pipe of this.#pipes) pipe.destroy();
  }

  /** As `cut`, and nobody gets through until `heal`. */
  cutOff(): void {
    this.#isCut = true;
    this.cut();
  }

  /** The connections stay, and nothing goes through, nor on new ones, until `heal`. */
  halfOpen(): void {
    this.#isMute = true;
    for (const pipe of this.#pipes) pipe.isMute = true;
  }

  #accept(client: Socket): void {
    if (this.#isCut) {
      client.resetAndDestroy();
      return;
    }
    const pipe = new Pipe(client, connect(this.#target, '127.0.0.1'), {
      loses: (text) => {
        const index = this.#lostReplies.findIndex(({ words }) => text.includes(words));
        return index < 0 ? undefined : this.#lostReplies.splice(index, 1)[0];
      },
      closed: () => this.#pipes.delete(pipe),
    });
    pipe.isMute = this.#isMute;
    this.#pipes.add(pipe);
  }
}

interface PipeHost {
  loses(text: string): LostReply | undefined;
  closed(): void;
}

/** One client's connection, and the one to the server that stands for it. A server answers when all is done. */
class Pipe {
  isMute = false;
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #host: PipeHost;
  #lost: LostReply | undefined;

  constructor(client: Socket, server: Socket, host: PipeHost) {
    this.#client = client;
    this.#server = server;
    this.#host = host;
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      // A reset is what these connections are for; 'close' follows.
      socket.on('error', () => {});
      socket.on('close', () => this.destroy());
    }
    client.on('data', (chunk) => {
      if (this.isMute) return;
      this.#lost ??= host.loses(chunk.toString('latin1'));
      server.write(chunk);
    });
    server.on('data', (chunk) => this.#down(chunk));
  }

  destroy(): void {
    this.isMute = true;
    this.#client.resetAndDestroy();
    this.#server.destroy();
    this.#host.closed();
  }

  #down(chunk: Buffer): void {
    if (this.isMute) return;
    const lost = this.#lost;
    if (lost === undefined) {
      this.#client.write(chunk);
      return;
    }
    this.isMute = true;
    if (lost.then === 'cut') this.destroy();
    lost.happened();
  }
}
