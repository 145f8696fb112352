import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

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
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      for (let command = take(text); command !== undefined; command = take(text)) {
        text = command.rest;
        this.#reply(socket, command.name);
      }
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

/** The first command of the text, once it is there in full. */
function take(text: string): { name: string; rest: string } | undefined {
  const words: string[] = [];
  let at = text.indexOf('\r\n') + 2;
  const count = Number(text.slice(1, at));
  if (at < 2) return undefined;
  while (words.length < count) {
    const start = text.indexOf('\r\n', at) + 2;
    if (start < 2) return undefined;
    const end = start + Number(text.slice(at + 1, start));
    if (text.length < end + 2) return undefined;
    words.push(text.slice(start, end));
    at = end + 2;
  }
  return { name: (words[0] as string).toLowerCase(), rest: text.slice(at) };
}
