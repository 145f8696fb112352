import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** What nobody waits for: subscriptions in a shard, and PostgreSQL's upkeep and pings, which come now and then. */
const background = [/^\*2\r\n\$10\r\nssubscribe\r\n/, /\.sweep\(/, /^Q.{4}SELECT 1\0/s];

/**
 * Stands between clients and a server, and counts round trips: what goes up after something came down begins another.
 * What nobody waits for is not counted.
 */
export class TripCounter {
  trips = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(target: number) {
    this.#server = createServer((client) => this.#accept(client, connect(target, '127.0.0.1')));
  }

  /** Listens on a free loopback port. */
  static async start(target: number): Promise<TripCounter> {
    const counter = new TripCounter(target);
    counter.#server.listen(0, '127.0.0.1');
    await once(counter.#server, 'listening');
    return counter;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #accept(client: Socket, server: Socket): void {
    let isUnderWay = false;
    client.on('data', (bytes) => {
      server.write(bytes);
      const text = bytes.toString('latin1');
      if (isUnderWay || background.some((pattern) => pattern.test(text))) return;
      isUnderWay = true;
      this.trips += 1;
    });
    server.on('data', (bytes) => {
      isUnderWay = false;
      client.write(bytes);
    });
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.setNoDelay(true);
      // Its 'close' follows.
      socket.on('error', () => {});
      socket.on('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
  }
}
