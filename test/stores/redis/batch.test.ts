import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import { createLocks, type Locks, lock, runInTrace } from 'reenlock';
import { RedisStore } from 'reenlock/redis';
import { useRedis } from '../../support/redis/redis-stage.ts';

/** A way to the server that may hold replies back, and counts the calls that went through meanwhile. */
class Wire {
  readonly #server: Server;
  readonly #sockets: Socket[] = [];
  #sent = '';
  #held: (() => void)[] | undefined;
  #onCalls: () => void = () => {};

  private constructor(port: number) {
    this.#server = createServer((client) => {
      const upstream = connect(port, '127.0.0.1');
      this.#sockets.push(client, upstream);
      client.on('data', (chunk) => {
        upstream.write(chunk);
        if (this.#held === undefined) return;
        this.#sent += chunk.toString('latin1');
        this.#onCalls();
      });
      upstream.on('data', (chunk) => {
        const pass = (): void => void client.write(chunk);
        if (this.#held === undefined) pass();
        else this.#held.push(pass);
      });
      client.on('close', () => upstream.destroy());
      upstream.on('close', () => client.destroy());
      for (const socket of [client, upstream]) socket.on('error', () => socket.destroy());
    });
  }

  static async to(port: number): Promise<Wire> {
    const wire = new Wire(port);
    wire.#server.listen(0, '127.0.0.1');
    await once(wire.#server, 'listening');
    return wire;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** The calls that came while replies were held back. */
  get calls(): number {
    return this.#sent.split(/evalsha/i).length - 1;
  }

  hold(): void {
    this.#sent = '';
    this.#held = [];
  }

  /** Resolves when as many calls have come while no reply went back. */
  reached(count: number): Promise<void> {
    return new Promise((resolve) => {
      this.#onCalls = () => {
        if (this.calls >= count) resolve();
      };
      this.#onCalls();
    });
  }

  let(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const pass of held) pass();
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

describe('A batch on Redis', () => {
  const stage = useRedis();
  const keys = Array.from({ length: 100 }, (_, index) => `order:${index}`);
  const waitMs = Number.POSITIVE_INFINITY;

  async function using<T>(clients: readonly Redis[], work: (processes: readonly Locks[]) => Promise<T>): Promise<T> {
    const processes = clients.map((client) => createLocks({ store: new RedisStore({ client }) }));
    try {
      return await work(processes);
    } finally {
      await Promise.all(processes.map((locks) => locks.close()));
      for (const client of clients) client.disconnect();
    }
  }

  it('A batch of 100 free keys is one round trip: all calls are sent before any reply, and so are all releases', async () => {
    const wire = await Wire.to(stage.server.port);
    await using([new Redis(wire.port)], ([locks]) =>
      runInTrace(
        async () => {
          // The server has seen the scripts.
          await lock.run('another', () => {});
          wire.hold();
          const acquired = lock.acquireAll(keys);
          await wire.reached(100);
          wire.let();
          const batch = await acquired;
          expect(batch.isHeld()).toBe(true);
          expect(wire.calls).toBe(100);
          wire.hold();
          const released = batch.release();
          await wire.reached(100);
          wire.let();
          await released;
          expect(wire.calls).toBe(100);
        },
        { locks: locks! },
      ),
    );
    await wire.close();
  });

  it('A batch never deadlocks with another that names the same 100 keys in the opposite order', async () => {
    let inside = 0;
    let rounds = 0;
    await using([stage.connect(), stage.connect()], async (processes) => {
      const visitor = async (locks: Locks, own: readonly string[]) => {
        for (let round = 0; round < 15; round++) {
          await runInTrace(
            () =>
              lock.runAll(
                own,
                async () => {
                  expect(++inside).toBe(1);
                  await new Promise((resolve) => setImmediate(resolve));
                  inside -= 1;
                  rounds += 1;
                },
                { waitMs },
              ),
            { locks },
          );
        }
      };
      const [one, two] = processes as [Locks, Locks];
      const reversed = [...keys].reverse();
      await Promise.all([visitor(one, keys), visitor(two, reversed), visitor(one, reversed), visitor(two, keys)]);
    });
    expect(rounds).toBe(60);
  });

  it('A batch is released whole if one of its keys is not free in time', async () => {
    await using([stage.connect(), stage.connect()], async ([one, two]) => {
      const other = () => runInTrace(() => lock.acquireAll(keys, { waitMs: 20 }), { locks: two!, traceId: 'other' });
      await runInTrace(() => lock.run('order:50', () => expect(other()).rejects.toMatchObject({ key: 'order:50' })), {
        locks: one!,
      });
      await runInTrace(() => lock.runAll(keys, () => {}, { waitMs: 0 }), { locks: one! });
    });
  });
});
