import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { RespReader, wordsOf } from '../redis/resp.ts';

/** Which connections a fault is for: all, those that subscribed, or those that did not. */
export type Link = 'all' | 'pubsub' | 'commands';

/** Looks at the words of a command on its way to the server. */
export type CommandTest = (words: readonly string[]) => boolean;

interface LostReply {
  readonly fits: CommandTest;
  /** Of those that fit, which one. */
  nth: number;
  readonly end: 'cut' | 'hang';
  readonly happened: () => void;
}

interface Jitter {
  readonly mostMs: number;
  readonly random: () => number;
}

/**
 * What is spoken through a proxy: commands and replies of Redis, or whatever. Of that, the words of a command are what the
 * client sends at once, and its reply is what the server sends next.
 */
export type Speech = 'redis' | 'any';

/**
 * Stands between clients and a server, and spoils what goes through: replies are lost after the server has executed
 * their commands, connections are reset, go half-open, or are slow. What one connection carries stays in order.
 */
export class TcpProxy {
  /** How many replies were lost as `loseReply` said. */
  lost = 0;
  #target: number;
  readonly #speech: Speech;
  readonly #server: Server;
  readonly #pipes = new Set<Pipe>();
  #lostReplies: LostReply[] = [];
  #halfOpen: Link | undefined;
  #jitter: Jitter | undefined;
  #resets: NodeJS.Timeout | undefined;
  #isCut = false;

  private constructor(target: number, speech: Speech) {
    this.#target = target;
    this.#speech = speech;
    this.#server = createServer((socket) => this.#accept(socket));
  }

  /** Listens on a free loopback port. */
  static async start(target: number, speech: Speech = 'redis'): Promise<TcpProxy> {
    const proxy = new TcpProxy(target, speech);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** How many connections go through. */
  get size(): number {
    return this.#pipes.size;
  }

  /** New connections go to another server; open ones stay where they are. */
  lead(target: number): void {
    this.#target = target;
  }

  async stop(): Promise<void> {
    this.heal();
    this.#isCut = true;
    for (const pipe of this.#pipes) pipe.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  /** From here on, all goes well for new connections, and for old ones that are still there. */
  heal(): void {
    clearInterval(this.#resets);
    this.#lostReplies = [];
    this.#jitter = undefined;
    this.#isCut = false;
    this.#halfOpen = undefined;
  }

  /**
   * The nth command that fits is executed, and its reply, with all that comes after, never arrives: the connection is cut
   * in its stead, or hangs. Resolves when that has happened.
   */
  loseReply(fits: CommandTest, { nth = 1, end = 'cut' }: { nth?: number; end?: 'cut' | 'hang' } = {}): Promise<void> {
    return new Promise((happened) => {
      this.#lostReplies.push({ fits, nth, end, happened });
    });
  }

  /** Ends every connection now, with a reset. */
  cut(link: Link = 'all'): void {
    for (const pipe of this.#pipes) if (pipe.isOf(link)) pipe.destroy();
  }

  /** As `cut`, and nobody gets through until `heal`. */
  cutOff(): void {
    this.#isCut = true;
    this.cut();
  }

  /** Ends every connection, again and again. */
  resetEvery(ms: number): void {
    clearInterval(this.#resets);
    this.#resets = setInterval(() => this.cut(), ms);
  }

  /** The connections stay, and nothing goes through, in either direction; nor on new ones, until `heal`. */
  halfOpen(link: Link = 'all'): void {
    this.#halfOpen = link;
    for (const pipe of this.#pipes) if (pipe.isOf(link)) pipe.hang();
  }

  /** Each piece of data is up to `mostMs` late. */
  delay(mostMs: number, random: () => number): void {
    this.#jitter = { mostMs, random };
  }

  #accept(client: Socket): void {
    if (this.#isCut) {
      client.resetAndDestroy();
      return;
    }
    const pipe: Pipe = new Pipe(client, connect(this.#target, '127.0.0.1'), {
      lateMs: () => (this.#jitter ? this.#jitter.random() * this.#jitter.mostMs : 0),
      loses: (words) => this.#loses(words),
      lost: (lostReply) => {
        this.lost += 1;
        lostReply.happened();
      },
      subscribed: () => {
        if (this.#halfOpen === 'pubsub') pipe.hang();
      },
      closed: () => this.#pipes.delete(pipe),
      isPlain: this.#speech === 'any',
    });
    this.#pipes.add(pipe);
    if (this.#halfOpen === 'all') pipe.hang();
  }

  #loses(words: readonly string[]): LostReply | undefined {
    for (const [index, lostReply] of this.#lostReplies.entries()) {
      if (!lostReply.fits(words)) continue;
      lostReply.nth -= 1;
      if (lostReply.nth > 0) continue;
      this.#lostReplies.splice(index, 1);
      return lostReply;
    }
    return undefined;
  }
}

interface PipeHost {
  /** Whether what goes through is not looked at. */
  readonly isPlain: boolean;
  lateMs(): number;
  loses(words: readonly string[]): LostReply | undefined;
  lost(lostReply: LostReply): void;
  subscribed(): void;
  closed(): void;
}

/** One client's connection, and the one to the server that stands for it. */
class Pipe {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #host: PipeHost;
  readonly #commands = new RespReader();
  readonly #replies = new RespReader();
  /** Of each command that waits for its reply, what is to become of that. */
  readonly #awaited: (LostReply | undefined)[] = [];
  readonly #upward: Lane = new Lane((bytes) => this.#server.write(bytes));
  readonly #downward: Lane = new Lane((bytes) => this.#client.write(bytes));
  /** The reply to lose next, of speech that is not looked into. */
  #lost: LostReply | undefined;
  #isPubsub = false;
  #isMute = false;

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
    client.on('data', (chunk) => this.#up(chunk));
    server.on('data', (chunk) => this.#down(chunk));
  }

  isOf(link: Link): boolean {
    return link === 'all' || (link === 'pubsub') === this.#isPubsub;
  }

  hang(): void {
    this.#isMute = true;
    this.#upward.clear();
    this.#downward.clear();
  }

  destroy(): void {
    this.hang();
    this.#client.resetAndDestroy();
    this.#server.destroy();
    this.#host.closed();
  }

  #up(chunk: Buffer): void {
    if (this.#isMute) return;
    if (this.#host.isPlain) this.#lost ??= this.#host.loses([chunk.toString('latin1')]);
    for (const command of this.#host.isPlain ? [] : this.#commands.read(chunk)) {
      const words = wordsOf(command);
      if (words[0]?.toLowerCase() === 'subscribe' && !this.#isPubsub) {
        this.#isPubsub = true;
        this.#host.subscribed();
      }
      this.#awaited.push(this.#isPubsub ? undefined : this.#host.loses(words));
    }
    this.#upward.send(chunk, this.#host.lateMs());
  }

  #down(chunk: Buffer): void {
    if (this.#host.isPlain) {
      if (this.#lost !== undefined) this.#lose(this.#lost);
      if (!this.#isMute) this.#downward.send(chunk, this.#host.lateMs());
      return;
    }
    const passed: string[] = [];
    for (const reply of this.#replies.read(chunk)) {
      const lostReply = reply.startsWith('>') ? undefined : this.#awaited.shift();
      if (lostReply !== undefined) this.#lose(lostReply);
      if (!this.#isMute) passed.push(reply);
    }
    if (passed.length === 0) return;
    this.#downward.send(Buffer.from(passed.join(''), 'latin1'), this.#host.lateMs());
  }

  #lose(lostReply: LostReply): void {
    if (this.#isMute) return;
    this.hang();
    this.#host.lost(lostReply);
    if (lostReply.end === 'cut') this.destroy();
  }
}

/** One direction of a connection: what is late holds back what comes after it. */
class Lane {
  readonly #pass: (bytes: Buffer) => void;
  readonly #waiting: { readonly bytes: Buffer; readonly dueMs: number }[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(pass: (bytes: Buffer) => void) {
    this.#pass = pass;
  }

  send(bytes: Buffer, lateMs: number): void {
    if (lateMs === 0 && this.#waiting.length === 0) {
      this.#pass(bytes);
      return;
    }
    this.#waiting.push({ bytes, dueMs: performance.now() + lateMs });
    this.#timer ??= setTimeout(() => this.#flush(), lateMs);
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#waiting.length = 0;
  }

  #flush(): void {
    this.#timer = undefined;
    for (let [next] = this.#waiting; next !== undefined; [next] = this.#waiting) {
      const leftMs = next.dueMs - performance.now();
      if (leftMs > 0) {
        this.#timer = setTimeout(() => this.#flush(), leftMs);
        return;
      }
      this.#waiting.shift();
      this.#pass(next.bytes);
    }
  }
}
