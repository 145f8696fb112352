import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { clientTls, type Protocol } from './protocols.ts';

/** One connection of HTTP/2. */
export class Http2Client {
  readonly session: ClientHttp2Session;

  private constructor(session: ClientHttp2Session) {
    this.session = session;
    // What becomes of a connection is seen by its requests.
    session.on('error', () => {});
  }

  static async connect(port: number, protocol: Protocol): Promise<Http2Client> {
    const isSecure = protocol === 'HTTP/2 over TLS';
    const session = connect(`${isSecure ? 'https' : 'http'}://127.0.0.1:${port}`, isSecure ? clientTls : {});
    await once(session, 'connect');
    return new Http2Client(session);
  }

  request({ path, trace, method = 'GET' }: { path: string; trace?: string; method?: string }): Http2Exchange {
    const own = trace === undefined ? {} : { 'x-trace-id': trace };
    return new Http2Exchange(this.session.request({ ':path': path, ':method': method, ...own }));
  }

  destroy(): void {
    this.session.destroy();
  }
}

/** One request of HTTP/2, whose client can hang up without its connection. */
export class Http2Exchange {
  readonly stream: ClientHttp2Stream;
  readonly closed: Promise<unknown>;
  status: number | undefined;
  #received = '';

  constructor(stream: ClientHttp2Stream) {
    this.stream = stream;
    this.closed = new Promise((resolve) => stream.once('close', resolve));
    stream.on('error', () => {});
    stream.once('response', (headers) => {
      this.status = headers[':status'];
    });
    stream.setEncoding('latin1').on('data', (chunk: string) => {
      this.#received += chunk;
    });
    stream.end();
  }

  get received(): string {
    return this.#received;
  }

  /** Resolves once what was received of the body matches. */
  async receives(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.#received)) {
      await Promise.race([once(this.stream, 'data'), this.closed.then(() => this.#failUnless(pattern))]);
    }
  }

  #failUnless(pattern: RegExp): void {
    if (!pattern.test(this.#received)) throw new Error(`The stream closed without ${pattern}: ${this.#received}`);
  }
}
