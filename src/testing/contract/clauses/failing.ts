import { types } from 'node:util';
import { LockStoreError } from '../../../core/model/errors/failures.ts';
import { goneMs, longMs, shortMs } from '../harness.ts';
import { type Contract, key } from '../stage.ts';

/** C17, C18: looking, and failing. */
export function describeFailing({ harness, stage, describe, it, itQueues, expect }: Contract): void {
  describe('C17 `inspect`', () => {
    it('`inspect` reports no holder and no waiter for an unknown key', async () => {
      expect(await stage.inspect()).toEqual({ nowMs: expect.any(Number), holds: [], waiters: [] });
    });

    itQueues('`inspect` returns holds and waiters, with owners and processes, in order', async () => {
      const process = stage.deafProcess();
      const holds = [process.line('holder'), process.line('holder')] as const;
      const grants = [await holds[0].hold(), await holds[1].hold({ leaseMs: 2 * longMs })] as const;
      const waiters = [await process.line('a').wait(), await process.line('b').wait(), await process.line('a').wait()];
      const reply = await stage.inspect();
      expect(reply.holds).toEqual(
        grants.map((grant) => ({ ...grant, owner: 'holder', process: holds[0].request.process, mode: 'write' })),
      );
      expect(reply.waiters.map(({ holdId, owner, process }) => [holdId, owner, process])).toEqual(
        waiters.map(({ request }) => [request.holdId, request.owner, request.process]),
      );
    });

    itQueues(
      "`inspect` returns since when each waiter waits, on the store's clock, whatever its priority",
      async () => {
        const process = stage.deafProcess();
        const { nowMs } = await process.line().ask();
        for (const priority of [3, 0, -3]) await process.line(undefined, { priority }).wait();
        const reply = await stage.inspect();
        const times = [nowMs - 1, ...reply.waiters.map(({ sinceMs }) => sinceMs), reply.nowMs + 1];
        expect(times).toEqual([...times].sort((a, b) => a - b));
      },
    );

    itQueues('`inspect` changes nothing: no hold, no order, no liveness, no grant', async () => {
      const [one, two] = [await stage.process(), await stage.process()];
      const { begin } = await stage.shortTurn();
      const gone = await two.line().wait({ livenessMs: shortMs });
      const waiter = await one.line().wait();
      await begin();
      await harness.elapse(goneMs);
      for (const _ of [1, 2, 3]) expect((await stage.order()).holds).toEqual([]);
      expect((await stage.order()).waiters).toContain(waiter.holdId);
      expect(await one.heard()).toEqual([]);
      // The looking did not count as a poll of anybody.
      await one.line().try();
      expect(await stage.order()).toEqual({ holds: [waiter.holdId], waiters: [] });
      expect(await gone.ask()).toMatchObject({ isNew: true });
    });

    it('`inspect` reports on one key only', async () => {
      await stage.deafProcess().line(undefined, { id: 'order:4' }).hold();
      expect((await stage.inspect()).holds).toEqual([]);
    });
  });

  describe('C18 Only a failed call rejects', () => {
    it('A call about an unknown hold id gets a reply, not an error', async () => {
      const line = stage.deafProcess().line();
      expect((await line.release()).status).toBe('absent');
      expect((await line.release(longMs)).status).toBe('absent');
      expect((await line.renew(1)).status).toBe('lost');
      expect(await stage.store.forceRelease(key, 1)).toBe(false);
      expect((await stage.inspect()).holds).toEqual([]);
    });

    for (const fault of harness.faults) {
      it(`${fault.name}: every call rejects with a LockStoreError, \`${fault.outcome}\``, async () => {
        const { store, close } = await fault.create();
        stage.store = store;
        const line = stage.deafProcess().line();
        const errors = await Promise.all(
          [
            () => line.ask(),
            () => line.renew(1),
            () => line.release(longMs),
            () => store.forceRelease(key, 1),
            ...(store.list === undefined ? [] : [() => store.list!({ idPrefix: '', limit: 1 })]),
          ].map((call) =>
            (call() as Promise<unknown>).then(
              () => undefined,
              (error: unknown) => error,
            ),
          ),
        );
        await close();
        for (const error of errors) {
          expect(error).toBeInstanceOf(LockStoreError);
          expect(error).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: fault.outcome });
          // Node's own errors are of another realm here.
          expect(types.isNativeError((error as Error).cause)).toBe(true);
          // Messages reach clients and logs: they name no key, owner or server.
          expect((error as Error).message).not.toMatch(/order|owner|hold-|127\.0\.0\.1/);
        }
      });
    }
  });
}
