import { longMs, shortMs } from '../harness.ts';
import { type Contract, key } from '../stage.ts';

/** C8: the acquire as the poll. */
export function describePolling({ harness, stage, describe, itQueues, expect }: Contract): void {
  describe('C8 An acquire is also the poll', () => {
    itQueues('A poll finds a grant whose message was lost', async () => {
      const [one, two] = [await stage.process(), await stage.process()];
      const holder = await one.line().acquired();
      const waiter = await two.line().wait();
      await holder.release();
      const sent = await two.granted(waiter);
      // As if the message was lost.
      expect(await waiter.ask()).toMatchObject({ status: 'granted', grant: sent });
    });

    itQueues('A poll for a waiter that gave up meanwhile returns `cancelled`', async () => {
      const process = await stage.process();
      await process.line().hold();
      const waiter = await process.line().wait();
      await waiter.copy.release(longMs);
      expect(await waiter.ask()).toMatchObject({ status: 'cancelled' });
      expect((await stage.order()).waiters).toEqual([]);
    });

    itQueues('A poll frees an expired hold and is granted itself, as a hand-off', async () => {
      const { process, holder, begin } = await stage.shortTurn();
      const waiter = await stage.deafProcess().line().wait();
      await begin();
      const { fence } = await process.granted(holder);
      await harness.elapse(shortMs);
      const grant = await waiter.hold();
      expect(grant.isClaim).toBe(true);
      expect(grant.fence).toBeGreaterThan(fence);
    });

    itQueues('A poll frees an expired hold and hands off to the first waiter, in another process too', async () => {
      const [one, two] = [await stage.process(), await stage.process()];
      const { begin } = await stage.shortTurn();
      const first = await one.line().wait();
      const second = await two.line().wait();
      await begin();
      await harness.elapse(shortMs);
      expect((await second.ask()).status).toBe('queued');
      expect(await one.granted(first)).toMatchObject({ isClaim: true });
    });

    itQueues('A claim that lapsed is queued anew, at the tail', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      const late = await process.line(undefined, { claimMs: shortMs }).wait();
      const next = await process.line().wait();
      await holder.release();
      await harness.elapse(shortMs);
      expect(await late.ask()).toMatchObject({ status: 'queued', isNew: true, claims: [{ holdId: next.holdId }] });
      expect(await stage.order()).toEqual({ holds: [next.holdId], waiters: [late.holdId] });
    });

    itQueues('A poll names the other claims that the process has open', async () => {
      const [one, two] = [await stage.process(), await stage.process()];
      const holder = await one.line().acquired();
      const mine = [await two.line('owner').wait(), await two.line('owner').wait()] as const;
      const queued = await two.line().wait();
      const foreign = await one.line().wait();
      await holder.release();
      const claims = await Promise.all(mine.map((line) => line.hold()));
      expect((await mine[0].ask()).claims).toMatchObject([claims[1]]);
      expect((await queued.ask()).claims).toMatchObject(claims);
      expect((await foreign.ask()).claims).toEqual([]);
    });

    itQueues(
      'The reply to a poll that names the newest waiter of its process shows whether the store has lost that one',
      async () => {
        const process = await stage.process();
        await process.line().hold();
        const [oldest, newest] = [await process.line().wait(), await process.line().wait()];
        const isLost = async (): Promise<boolean> => {
          const reply = await oldest.ask({ newest: newest.request });
          return reply.status === 'queued' && reply.isNewestLost === true;
        };
        expect(await isLost()).toBe(false);
        await newest.release(longMs);
        expect(await isLost()).toBe(true);
      },
    );

    itQueues('A claim that was renewed is not named any more', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      const waiter = await process.line().wait();
      const { claims } = await holder.release();
      await waiter.renew(claims[0]!.fence);
      expect((await process.line().try()).claims).toEqual([]);
    });

    itQueues('A claim that lapsed is not named any more', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      await process.line('owner', { claimMs: shortMs }).wait();
      const stays = await process.line('owner').wait();
      await holder.release();
      await harness.elapse(shortMs);
      expect(await stays.ask()).toMatchObject({ status: 'granted', claims: [] });
    });

    itQueues('A waiter whose owner was granted elsewhere meanwhile is granted with the same fence', async () => {
      const { begin } = await stage.shortTurn();
      const waiter = await stage.deafProcess().line('owner').wait();
      await begin();
      await harness.elapse(shortMs);
      // Its process can't be reached: the key passes to the newcomer of the same owner.
      const { fence } = await stage.deafProcess().line('owner').hold();
      expect((await waiter.hold()).fence).toBe(fence);
      expect(await stage.order()).toMatchObject({ waiters: [] });
    });
  });

  for (const loss of harness.losses) {
    describe(`C8 After ${loss.name}`, () => {
      itQueues('The key goes to the first that polls, and the others queue in the order of their polls', async () => {
        const process = stage.deafProcess();
        const holder = process.line();
        const { fence } = await holder.hold();
        const lines = [await process.line().wait(), await process.line().wait(), await process.line().wait()] as const;
        stage.store = await loss.happen();
        expect((await lines[1].hold()).fence).toBeGreaterThan(fence);
        expect(await lines[2].ask()).toMatchObject({ status: 'queued', isNew: true });
        expect(await lines[0].ask()).toMatchObject({ status: 'queued', isNew: true });
        expect(await stage.order()).toEqual({
          holds: [lines[1].holdId],
          waiters: [lines[2].holdId, lines[0].holdId],
        });
        expect(await holder.renew(fence)).toEqual({ status: 'lost' });
        expect((await holder.release()).status).toBe('absent');
      });

      itQueues('A waiter that was queued again is handed the key on release, and gets the message', async () => {
        const process = await stage.process();
        await process.line().hold();
        const lines = [await process.line().wait(), await process.line().wait()] as const;
        await process.leave();
        stage.store = await loss.happen();
        await process.listen();
        await lines[0].hold();
        await lines[1].wait();
        expect((await lines[0].release()).claims).toMatchObject([{ holdId: lines[1].holdId }]);
        expect((await stage.inspect(key)).waiters).toEqual([]);
      });
    });
  }
}
