import { Redis } from 'ioredis';
import type { StoreMessage } from '../../../src/core/model/store.ts';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { renew } from '../../../src/stores/redis/scripts.generated.ts';
import { longMs } from '../../../src/testing/contract/harness.ts';
import { key } from '../../../src/testing/contract/stage.ts';
import { type RedisOptions, useRedis } from '../../support/redis/redis-stage.ts';
import { type RedisServer, startRedis } from '../../support/redis/server.ts';
import { until } from '../../support/until.ts';

describe('A store that waits for a replica', () => {
  const stage = useRedis(['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1']);
  let replica: RedisServer;
  let copy: Redis;
  let ends: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    replica = await startRedis({ args: ['--replicaof', `127.0.0.1 ${stage.server.port}`] });
    copy = new Redis(replica.port);
    // It first acknowledges what it has up to a second after its link is up, which is as long as the store waits.
    const primary = new Redis(stage.server.port);
    await primary.publish('the-suite', '');
    await until(async () => (await primary.wait(1, 100)) === 1);
    primary.disconnect();
  });
  afterAll(async () => {
    copy.disconnect();
    await replica.stop();
  });
  let store: RedisStore;
  beforeEach(async () => {
    store = new RedisStore({ client: stage.client, waitReplicas: 1 });
    stage.store = store;
    // The last subscription closes what calls have opened.
    ends = [await store.subscribe('the-suite', () => {})];
  });
  afterEach(async () => {
    await Promise.all(ends.map((end) => end()));
  });

  const record = `reenlock:{${key}}:lock`;

  it('The replica has what the store has granted and renewed', async () => {
    const line = stage.deafProcess().line();
    const { fence, endMs } = await line.hold({ leaseMs: 10_000 });
    expect(await copy.hmget(record, 'fence', 'ends')).toEqual([String(fence), String(endMs)]);
    expect(endMs).toBeGreaterThan(Date.now() - longMs);
    expect(await line.renew(fence, longMs)).toMatchObject({ status: 'renewed' });
    expect(Number(await copy.hget(record, 'ends'))).toBeGreaterThan(endMs + 10_000);
  });

  it('The store grants and renews nothing while the replica does not respond, and queueing and releasing go on', async () => {
    const [holder, other] = [stage.deafProcess().line(), stage.deafProcess().line(undefined, { id: 'another' })];
    const { fence } = await holder.hold();
    replica.pause();
    const unknown = { code: 'ERR_LOCK_STORE', outcome: 'unknown' };
    await expect(other.ask()).rejects.toMatchObject({
      ...unknown,
      message: expect.stringContaining("Expected 1 of the lock store's replicas to confirm acquire, but 0 did"),
    });
    await expect(holder.renew(fence)).rejects.toMatchObject({
      ...unknown,
      message: expect.stringContaining("Expected 1 of the lock store's replicas to confirm renew, but 0 did"),
    });
    const waiter = await stage.deafProcess().line().wait();
    expect((await waiter.release()).status).toBe('cancelled');
    expect((await other.release()).status).toBe('released');
    replica.resume();
    expect((await other.ask()).status).toBe('granted');
  });

  it('A hand-off is a message that only wakes, and the grant stands when the store was called and a replica has it', async () => {
    const messages: StoreMessage[] = [];
    const process = stage.deafProcess();
    ends.push(await store.subscribe(process.name, (message) => void messages.push(message)));
    const holder = stage.deafProcess().line();
    await holder.hold();
    const [waiter, next] = [await process.line().wait(), await process.line().wait()];
    await holder.release();
    await until(() => messages.some(({ kind }) => kind === 'granted'));
    expect(messages.filter(({ kind }) => kind === 'granted')).toMatchObject([{ grant: { endMs: 0 } }]);
    expect((await next.ask()).claims).toMatchObject([{ holdId: waiter.holdId, endMs: 0 }]);
    const taken = process.line(undefined, { id: 'taken' });
    await store.forceRelease('taken', (await taken.hold()).fence);
    await until(() => messages.at(-1)?.kind === 'lost');
    expect(messages.at(-1)).toEqual({ kind: 'lost', holdId: taken.holdId });
    replica.pause();
    await expect(waiter.ask()).rejects.toMatchObject({ code: 'ERR_LOCK_STORE' });
    replica.resume();
    const reply = await waiter.ask();
    expect(reply).toMatchObject({ status: 'granted', grant: { isClaim: expect.any(Boolean) } });
    expect(await copy.hget(record, 'hold')).toBe(waiter.holdId);
  });

  it('Writing a claim again makes it no longer than was asked for', async () => {
    const holder = stage.deafProcess().line();
    await holder.hold();
    const waiter = await stage.deafProcess().line(undefined, { claimMs: 10_000 }).wait();
    await holder.release();
    const reply = await waiter.ask();
    expect(reply.status === 'granted' && reply.grant.endMs - reply.nowMs).toBe(10_000);
  });

  it('The store passes no hold on while the replica does not respond, not even when asked again on another connection', async () => {
    const [from, to] = [stage.deafProcess().line(), stage.deafProcess().line()];
    await from.hold();
    replica.pause();
    await expect(from.transfer(to)).rejects.toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
    await stage.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await expect(from.transfer(to)).rejects.toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
    replica.resume();
    expect((await from.transfer(to)).status).toBe('granted');
    expect(await copy.hget(record, 'hold')).toBe(to.holdId);
  });

  it('A connection that is lost before the replica has confirmed confirms nothing', async () => {
    const line = stage.deafProcess().line();
    await stage.deafProcess().line(undefined, { id: 'warm' }).hold();
    replica.pause();
    const reply = line.ask().catch((error: unknown) => error);
    const waiting = async () => /^id=(\d+) .* flags=b /m.exec((await stage.connections()).join('\n'))?.[1];
    await until(async () => (await waiting()) !== undefined);
    await stage.client.client('KILL', 'ID', Number(await waiting()));
    expect(await reply).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
    replica.resume();
    await line.release();
  });

  it('A call that got no connection in time is no longer sent, and reports that', async () => {
    const lines = Array.from({ length: 12 }, (_, i) => stage.deafProcess().line(undefined, { id: `order-${i}` }));
    replica.pause();
    const errors = await Promise.all(lines.map((line) => line.ask().catch((error: unknown) => error)));
    replica.resume();
    const isLate = (error: unknown): boolean => (error as { outcome: string }).outcome === 'not-applied';
    // Four at a time, and the next four begin when those before them were given up.
    expect(errors.filter(isLate).length).toBeGreaterThanOrEqual(4);
    for (const [i, line] of lines.entries()) {
      const { holds } = await stage.inspect(line.request.id);
      expect(holds).toHaveLength(isLate(errors[i]) ? 0 : 1);
      expect((await line.ask()).mayArriveLater).toBe(false);
    }
  });

  it('A call that was given up before it got a connection is granted nothing', async () => {
    const busy = Array.from({ length: 4 }, (_, i) => stage.deafProcess().line(undefined, { id: `order-${i}` }));
    const late = stage.deafProcess().line();
    replica.pause();
    const replies = busy.map((line) => line.ask().catch(() => undefined));
    await until(async () => String(await stage.connections()).match(/ flags=b /g)?.length === busy.length);
    const reply = late.ask();
    await late.release(longMs);
    replica.resume();
    expect((await reply).status).toBe('cancelled');
    expect((await stage.inspect()).holds).toEqual([]);
    await Promise.all(replies);
  });

  /** From now on the store's renewals on connections of its own are `spoilt`, which may send them. */
  async function spoil(spoilt: (send: () => Promise<unknown>) => Promise<unknown>): Promise<void> {
    const duplicate = (options: RedisOptions): Redis => {
      const connection = stage.client.duplicate(options);
      const call = connection.call.bind(connection) as (...args: unknown[]) => Promise<unknown>;
      const instead = (...args: unknown[]) => (args[1] === renew.sha1 ? spoilt(() => call(...args)) : call(...args));
      return Object.assign(connection, { call: instead });
    };
    const client: Redis = Object.create(stage.client, { duplicate: { value: duplicate } });
    stage.store = new RedisStore({ client, waitReplicas: 1 });
    ends.push(await stage.store.subscribe('another', () => {}));
  }

  it('A grant whose confirming renewal was refused may stand: the outcome is unknown', async () => {
    const refused = Object.assign(new Error('READONLY You can not write'), { name: 'ReplyError' });
    await spoil(() => Promise.reject(refused));
    const line = stage.deafProcess().line();
    await expect(line.ask()).rejects.toMatchObject({
      outcome: 'unknown',
      message: expect.stringContaining('READONLY'),
    });
    expect((await stage.order()).holds).toEqual([line.holdId]);
  });

  it('A grant that was taken away before it was confirmed is none', async () => {
    await spoil(async (send) => {
      await store.forceRelease(key, (await stage.inspect()).holds[0]!.fence);
      return send();
    });
    const line = stage.deafProcess().line();
    await expect(line.ask()).rejects.toMatchObject({
      code: 'ERR_LOCK_STORE',
      message: expect.stringContaining('had expired before the replicas confirmed it'),
    });
    expect((await stage.order()).holds).toEqual([]);
  });

  it('A grant whose user has no right to WAIT stands: the outcome is unknown, and so is that of a renewal', async () => {
    stage.store = new RedisStore({ client: await stage.connectAs('hasty', '-wait'), waitReplicas: 1 });
    const line = stage.deafProcess().line();
    const unknown = { outcome: 'unknown', message: expect.stringContaining('NOPERM') };
    await expect(line.ask()).rejects.toMatchObject(unknown);
    const { holds } = await stage.inspect();
    expect(holds).toMatchObject([{ holdId: line.holdId }]);
    await expect(line.renew(holds[0]!.fence)).rejects.toMatchObject(unknown);
  });

  it('No connection is kept for a call that arrives after the store’s last subscriber has gone', async () => {
    const late = new RedisStore({ client: stage.client, waitReplicas: 1 });
    await (await late.subscribe('another', () => {}))();
    const duplicate = jest.spyOn(stage.client, 'duplicate');
    stage.store = late;
    const line = stage.deafProcess().line();
    await line.renew((await line.hold()).fence);
    const opened = duplicate.mock.results.map(({ value }) => value as Redis);
    expect(opened.map(({ stream }) => stream.writableEnded)).toEqual([true, true]);
  });

  it('`waitReplicas` has to be a number', () => {
    for (const waitReplicas of [-1, 0.5, 101, '1']) {
      expect(() => new RedisStore({ client: stage.client, waitReplicas: waitReplicas as number })).toThrow(
        'Expected `waitReplicas` to be a whole number, 0 to 100',
      );
    }
  });
});
