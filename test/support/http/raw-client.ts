import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { overTls, type Protocol } from './protocols.ts';

/** How a client hangs up: properly, or by a reset. */
export type Hangup = 'FIN' | 'RST';

/** An HTTP client that can do what well-behaved ones can't: hang up, pipeline, not read. */
export class RawClient {
  readonly socket: Socket;
  readonly closed: Promise<unknown>;
  readonly #tcp: Socket;
  #received = '';

  private constructor(tcp: Socket, socket: Socket) {
    this.socket = socket;
    this.#tcp = tcp;
    this.closed = new Promise((resolve) => socket.once('close', resolve));
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      this.#received += chunk;
    });
    // A reset by the server is seen by what was, or was not, received.
    socket.on('error', () => {});
    if (tcp !== socket) tcp.on('error', () => {});
  }

  static async connect(port: number, protocol: Protocol = 'HTTP/1.1'): Promise<RawClient> {
    const tcp = connect({ port, host: '127.0.0.1' });
    await once(tcp, 'connect');
    if (protocol === 'HTTP/1.1') return new RawClient(tcp, tcp);
    const tls = overTls(tcp);
    await once(tls, 'secureConnect');
    return new RawClient(tcp, tls);
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

  /** Sends the FIN and goes on reading. */
  halfClose(): this {
    this.socket.end();
    return this;
  }

  /** Ends the connection and resolves when it is closed on this side. */
  async hangUp(how: Hangup = 'FIN'): Promise<void> {
    if (how === 'RST') this.#tcp.resetAndDestroy();
    else this.socket.end().resume();
    await this.closed;
  }

  destroy(): void {
    this.socket.destroy();
  }

  #failUnless(pattern: RegExp): void {
    if (!pattern.test(this.#received)) throw new Error(`The connection closed without ${pattern}: ${this.#received}`);
  }
}
