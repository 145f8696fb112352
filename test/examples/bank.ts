import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A bank that answers when a test lets it, so that a service is in the midst of its work for as long as the test likes. */
export class Bank {
  readonly #server: Server;
  readonly #held: ServerResponse[] = [];
  readonly #arrivals = new EventEmitter();
  #isOpen = false;

  private constructor(server: Server) {
    this.#server = server.on('request', (req, res) => this.#take(req, res));
  }

  static async open(): Promise<Bank> {
    const bank = new Bank(createServer());
    bank.#server.listen(0, '127.0.0.1');
    await once(bank.#server, 'listening');
    return bank;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Resolves once a question is asked that has no answer yet. */
  async asked(): Promise<void> {
    if (this.#held.length === 0) await once(this.#arrivals, 'question');
  }

  /** Answers the oldest question. */
  async answer(): Promise<void> {
    await this.asked();
    this.#held.shift()?.writeHead(201).end();
  }

  /** Answers all that is asked from now on. */
  answerAll(): void {
    this.#isOpen = true;
  }

  async close(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  #take(req: IncomingMessage, res: ServerResponse): void {
    req.resume();
    if (this.#isOpen) {
      res.writeHead(201).end();
      return;
    }
    this.#held.push(res);
    this.#arrivals.emit('question');
  }
}
