import { acquire, release, renew } from '../../src/stores/redis/scripts.generated.ts';
import type { CommandTest } from '../support/processes/tcp-proxy.ts';
import { clientLibrariesForFaults } from '../support/redis/clients.ts';
import { until } from '../support/until.ts';
import type { Client, RemoteHold } from './crew.ts';
import { Lab } from './lab.ts';
import { isLong, printSeed, seed, seeded } from './seed.ts';

printSeed('network');

const key = 'order:42';
const workMs = isLong ? 20_000 : 1_200;

/** All of them in the long form; in the short form one, which the seed chooses. */
function some<T>(...ways: T[]): T[] {
  return isLong ? ways : ways.slice(seed % ways.length).slice(0, 1);
}

interface Script {
  readonly sha1: string;
  readonly source: string;
}

/** The words behind the keys of a call of a script, by digest or by source. */
function argsOf({ sha1, source }: Script, [name = '', script, keys, ...words]: readonly string[]) {
  const isCall = /^eval/i.test(name) && (script === sha1 || script === source);
  return isCall ? words.slice(Number(keys)) : undefined;
}

describe.each(clientLibrariesForFaults)('Network faults, with $name', ({ name: library }) => {
  const resends = !library.startsWith('node-redis');
  let lab: Lab;
  /** The owners of the holds that were asked for. Only an acquire names them. */
  const owners = new Map<string, string>();
  beforeEach(async () => {
    lab = await Lab.start([], library);
    void lab.proxy.loseReply((words) => {
      const [, owner, hold] = argsOf(acquire, words) ?? [];
      if (owner !== undefined && hold !== undefined) owners.set(hold, owner);
      return false;
    });
    // Every script is known: a call is executed when it is first sent.
    for (const { source } of [acquire, renew, release]) await lab.admin.script('LOAD', source);
  });
  afterEach(() => lab.stop());

  /** A call of a script for an owner. */
  function call(script: Script, owner: string): CommandTest {
    const place = script === acquire ? 2 : 0;
    return (words) => owners.get(argsOf(script, words)?.[place] ?? '') === owner;
  }

  const waiting = (...names: string[]) => until(async () => (await lab.waiters(key)).join() === names.join());

  /** One that holds and one that waits, in processes of their own. */
  async function contest(): Promise<[first: RemoteHold, second: Promise<RemoteHold>, a: Client, b: Client]> {
    const [a, b] = (await lab.clients(2, { pollMs: 100 })) as [Client, Client];
    const first = await a.acquire(key);
    const second = b.acquire(key);
    await waiting('p2.1');
    return [first, second, a, b];
  }

  it.each(some<'cut' | 'hang'>('cut', 'hang'))(
    '[network-01] An acquire whose reply is lost (%s) is one hold, or an error that leaves none',
    async (end) => {
      const [a, b] = await Promise.all([lab.client(end === 'hang' ? { storeTimeoutMs: 500 } : {}), lab.client()]);
      const isLost = lab.proxy.loseReply(call(acquire, 'p1.1'), { end });
      const acquired = a.acquire(key).then(
        (hold) => hold,
        (error: unknown) => error as { code: string },
      );
      await isLost;
      if (end === 'cut' && resends) {
        // Sent again after the reconnect, under the same hold id.
        const hold = (await acquired) as RemoteHold;
        expect((await lab.known(key)).fences).toEqual([hold.fence]);
        await hold.release();
      } else {
        expect(await acquired).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
        if (end === 'hang') lab.proxy.cut();
      }
      await (await b.acquire(key)).release();
      await lab.end();
    },
  );

  it.each(some<'cut' | 'hang'>('cut', 'hang'))(
    '[network-02] A release whose reply is lost (%s) releases once, and takes nothing from the next holder',
    async (end) => {
      const [first, second, , b] = await contest();
      const isLost = lab.proxy.loseReply(call(release, 'p1.1'), { end });
      const released = first.release().then(
        () => 'released',
        (error: { code: string }) => error.code,
      );
      await isLost;
      const next = await second;
      if (end === 'hang') lab.proxy.cut();
      expect(['released', 'ERR_LOCK_STORE']).toContain(await released);
      expect(await next.look()).toMatchObject({ isHeld: true, isAborted: false });
      expect((await lab.known(key)).holders).toEqual(['p2.1']);
      b.disturbed();
      await next.release();
      await lab.end();
    },
  );

  it('[network-03] A renewal whose reply is lost loses nothing: it is tried again', async () => {
    const [a, b] = (await lab.clients(2)) as [Client, Client];
    const isLost = lab.proxy.loseReply(call(renew, 'p1.1'), { nth: 2 });
    const first = await a.acquire(key, { leaseMs: 4_500 });
    await isLost;
    const renewals = () => lab.history.filter(({ kind }) => kind === 'renewed').length;
    const before = renewals();
    await until(() => renewals() > before);
    expect(await first.look()).toMatchObject({ isHeld: true, isAborted: false });
    await first.release();
    await (await b.acquire(key)).release();
    await lab.end();
  });

  it('[network-04] A cancel whose reply is lost leaves no waiter, and the waiter behind it is served', async () => {
    const [first, gone, , b] = await contest();
    gone.catch(() => {});
    const isLost = lab.proxy.loseReply(call(release, 'p2.2'));
    const impatient = b.acquire(key, { waitMs: 2_000 });
    impatient.catch(() => {});
    const behind = b.acquire(key);
    await until(() => lab.told(key).has('p2.3'));
    await isLost;
    await expect(impatient).rejects.toMatchObject({ code: 'ERR_LOCK_TIMEOUT' });
    b.disturbed();
    await until(async () => !(await lab.known(key)).waiters.includes('p2.2'));
    await first.release();
    await (await gone).release();
    await (await behind).release();
    await lab.end();
  });

  it('[network-05] Resets every 100 ms cost time, and nothing else: one owner at a time, and no grant lost', async () => {
    const all = await lab.clients(2, { pollMs: 100 });
    for (const client of all) client.disturbed();
    lab.proxy.resetEvery(100);
    const work = all.map((client, n) => client.work([key, 'order:43'], 3, workMs, seed + n));
    await new Promise((resolve) => setTimeout(resolve, workMs));
    // A busy machine may take longer than that for one call.
    lab.proxy.heal();
    expect(Math.min(...(await Promise.all(work)))).toBeGreaterThan(0);
    await lab.end({ fifo: false });
  });

  it('[network-06] Delays of up to 200 ms cost time, and nothing else', async () => {
    const all = await lab.clients(2, { pollMs: 100 });
    lab.proxy.delay(200, seeded(seed));
    const counts = await Promise.all(all.map((client, n) => client.work([key, 'order:43'], 3, workMs, seed + n)));
    expect(Math.min(...counts)).toBeGreaterThan(0);
    await lab.end({ fifo: false });
  });

  it('[network-07] A half-open connection grants nothing: the holder learns by its own clock that it lost the key', async () => {
    const [a, b] = await Promise.all([lab.client({ storeTimeoutMs: 800 }), lab.client({ storeTimeoutMs: 3_000 })]);
    const first = await a.acquire(key, { leaseMs: 4_500 });
    lab.proxy.halfOpen();
    const refused = b.acquire(key).catch((error: unknown) => error);
    expect(await refused).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
    await until(async () => (await first.look()).isAborted);
    expect((await first.look()).events).toEqual(expect.arrayContaining(['storeError renew', 'lost']));
    // The other process got the connection back; the first one has nothing to do with its lease being over.
    lab.proxy.heal();
    lab.proxy.cut();
    const second = await b.acquire(key);
    expect(second.fence).toBeGreaterThan(first.fence);
    await second.release();
    await first.release().catch(() => {});
    await lab.end();
  });

  it.each<[string, () => unknown]>(
    some(
      ['killed on the server', () => lab.admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')],
      ['half-open', async () => lab.proxy.halfOpen('pubsub')],
      ['cut', async () => lab.proxy.cut('pubsub')],
    ),
  )(
    '[network-08] Messages that do not arrive, since their connection is %s, are replaced by the poll',
    async (_, spoil) => {
      const [first, second, , b] = await contest();
      const third = b.acquire(key);
      await waiting('p2.1', 'p2.2');
      await spoil();
      await first.release();
      await (await second).release();
      await (await third).release();
      // A claim may lapse while the store believes that the process is reached.
      await lab.end({ maxPolls: 3 });
    },
  );
});

describe.each(clientLibrariesForFaults)(
  'A server that drops the connection of a process that does not read, with $name',
  ({ name }) => {
    it('[network-09] A process whose connection was dropped subscribes anew, and no waiter is lost', async () => {
      const lab = await Lab.start(['--client-output-buffer-limit', 'pubsub 4096 4096 1'], name);
      try {
        const a = await lab.client();
        // Past the proxy, which would read what the process does not.
        const b = await lab.client({ pollMs: 100 }, { store: lab.setupFor(lab.server.port) });
        const channels = async () => (await lab.admin.pubsub('CHANNELS')) as string[];
        const first = await a.acquire(key);
        const others = await channels();
        const second = b.acquire(key);
        await until(async () => (await lab.known(key)).waiters.length === 1);
        const channel = (await channels()).find((name) => !others.includes(name)) as string;
        b.pause();
        // More than its socket takes, and then the server's buffer.
        const flood = 'x'.repeat(1_000_000);
        await until(async () => (await lab.admin.publish(channel, flood)) === 0);
        b.resume();
        await until(async () => (await channels()).includes(channel));
        await first.release();
        await (await second).release();
        await lab.end();
      } finally {
        await lab.stop();
      }
    });
  },
);
