import { once } from 'node:events';
import { connect, type NetConnectOpts, type Socket } from 'node:net';

/** How a client hangs up: properly, or by a reset. */
export type Hangup = 'FIN' | 'RST';

/** An HTTP client that can do what well-behaved ones can't: hang up, pipeline, not read. */
export class RawClient {
  readonly socket: Socket;
  readonly closed: Promise<unknown>;
  #received = '';

  private constructor(socket: Socket) {
    this.socket = socket;
    this.closed = new Promise((resolve) => socket.once('close', resolve));
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      this.#received += chunk;
    });
    // A reset by the server is seen by what was, or was not, received.
    socket.on('error', () => {});
  }

  static async connect(port: number): Promise<RawClient> {
    const options: NetConnectOpts = { port, host: '127.0.0.1' };
    const socket = connect(options);
    await once(socket, 'connect');
    return new RawClient(socket);
  }

  get received(): string {
    return this.#received;
  }

  /** Sends requests in one write, so that more than one are pipelined. */
  request(
    ...requests: readonly { path: string; trace?: string; headers?: readonly string[]; method?: string }[]
  ): this {
    const texts = requests.map(({ path, trace, headers = [], method = 'GET' }) => {
      const own = trace === undefined ? [] : [`X-Trace-Id: ${trace}`];
      return [`${method} ${path} HTTP/1.1`, 'Host: localhost', ...own, ...headers, '', ''].join('\r\n');
    });
    this.socket.write(texts.join(''), 'latin1');
    return this;
  }

  /** Resolves once what was received so far matches. */
  async receives(pattern: RegExp): Promise<RegExpExecArray> {
    while (true) {
      const match = pattern.exec(this.#received);
      if (match !== null) return match;
      await Promise.race([once(this.socket, 'data'), this.closed.then(() => this.#failUnless(pattern))]);
    }
  }

  /** Stops reading: the server's buffers fill up. */
  pause(): this {
    this.socket.pause();
    return this;
  }

  /** Ends the connection and resolves when it is closed on this side. */
  async hangUp(how: Hangup = 'FIN'): Promise<void> {
    if (how === 'RST') this.socket.resetAndDestroy();
    else this.socket.end().resume();
    await this.closed;
  }

  #failUnless(pattern: RegExp): void {
    if (!pattern.test(this.#received)) throw new Error(`The connection closed without ${pattern}: ${this.#received}`);
  }
}
