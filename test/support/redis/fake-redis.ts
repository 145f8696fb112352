import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { RespReader, wordsOf } from './resp.ts';

/** What the fake answers to a script call: RESP without the line end, or nothing and a closed connection. */
export type ScriptAnswer = string | 'hang up';

/** A server that speaks just enough RESP for a client, and answers every script call as it is told. */
export class FakeRedis {
  answer: ScriptAnswer = '+OK';
  /** The names of the commands it got, in order. */
  readonly commands: string[] = [];
  readonly #server: Server = createServer((socket) => this.#serve(socket));
  readonly #sockets = new Set<Socket>();

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket));
    socket.on('error', () => {});
    const commands = new RespReader();
    socket.on('data', (chunk) => {
      for (const command of commands.read(chunk)) this.#reply(socket, wordsOf(command)[0]!.toLowerCase());
    });
  }

  #reply(socket: Socket, name: string): void {
    this.commands.push(name);
    if (name === 'hello') socket.write('-ERR unknown command\r\n');
    else if (!name.startsWith('eval')) socket.write('+OK\r\n');
    else if (this.answer === 'hang up') socket.destroy();
    else socket.write(`${this.answer}\r\n`);
  }
}
