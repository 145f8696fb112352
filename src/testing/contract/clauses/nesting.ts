import { longMs, shortMs } from '../harness.ts';
import { type Contract, holdIds, key } from '../stage.ts';

/** C2, C3, C6, C14, C19 to C22, C29 for owners that are nested: `T`, `T/1`, `T/1/9f3k`. */
export function describeNesting(contract: Contract): void {
  describeAdmission(contract);
  describeNestedQueue(contract);
  if (contract.has('modes')) describeNestedReaders(contract);
  if (contract.has('permits')) describeNestedPermits(contract);
  if (contract.has('transfer')) describeInheritance(contract);
}

function describeAdmission({ harness, stage, describe, it, expect }: Contract): void {
  describe('C2 A hold admits its owner and its descendants', () => {
    it('Nested calls are granted at any depth and in any process, with the fence of the holder', async () => {
      const { fence } = await stage.deafProcess().line('T').hold();
      for (const owner of ['T/1', 'T/1/a', 'T/1/a/b']) {
        expect(await stage.deafProcess().line(owner).hold()).toMatchObject({ fence });
      }
    });

    it('A sibling, a cousin, a parent and a stranger are excluded', async () => {
      const process = stage.deafProcess();
      await process.line('T/1/a').hold();
      for (const owner of ['T/2', 'T/1/b', 'T/2/a', 'T/1', 'T', 'U', 'T/1/ab', 'T/1/a-b'])
        expect(await process.line(owner).status({ queue: false })).toBe('refused');
    });

    it('A nested hold excludes the siblings of its owner also when an ancestor holds beneath it', async () => {
      const process = stage.deafProcess();
      await process.line('T').hold();
      const one = await process.line('T/1').acquired();
      for (const owner of ['T/2', 'T']) expect(await process.line(owner).status({ queue: false })).toBe('refused');
      await one.release();
      expect(await process.line('T/2').status({ queue: false })).toBe('granted');
    });

    it('A nested hold outlives its ancestor’s, and then excludes everybody outside of its branch', async () => {
      const process = stage.deafProcess();
      const root = await process.line('T').acquired();
      await process.line('T/1').hold();
      await root.release();
      for (const owner of ['T', 'T/2', 'U']) expect(await process.line(owner).status({ queue: false })).toBe('refused');
      expect(await process.line('T/1/a').status({ queue: false })).toBe('granted');
    });

    it('A branch is free for its siblings when its lease has ended', async () => {
      const process = stage.deafProcess();
      await process.line('T').hold();
      await process.line('T/1').hold({ leaseMs: shortMs });
      await harness.elapse(shortMs);
      expect(await process.line('T/2').status({ queue: false })).toBe('granted');
    });

    it('A grant has the number of other holds of its ancestors', async () => {
      const process = stage.deafProcess();
      const lines = ['T', 'T/1', 'T/1', 'T/1/a'].map((owner) => process.line(owner));
      const counts = [];
      for (const line of lines) counts.push(await line.ask());
      expect(counts).toMatchObject([0, 1, 2, 3].map((otherHolds) => ({ grant: { otherHolds } })));
    });
  });
}

function describeNestedQueue({ stage, describe, itQueues: it, expect }: Contract): void {
  describe('C6 A waiter that is nested in a holder stands before strangers', () => {
    it('A branch that waits for a sibling is granted before a stranger that was queued first', async () => {
      const process = await stage.process();
      const root = await process.line('T').acquired();
      const one = await process.line('T/1').acquired();
      const stranger = await process.line('U').wait();
      const two = process.line('T/2');
      expect(await two.ask()).toMatchObject({ status: 'queued', position: 0 });
      await one.release();
      expect(await stage.order()).toEqual({ holds: holdIds([root, two]), waiters: [stranger.holdId] });
      await two.release();
      await root.release();
      expect(await stage.order()).toEqual({ holds: [stranger.holdId], waiters: [] });
    });

    it('A child of the deepest holder is granted before a child of a sibling that was queued first', async () => {
      const process = await stage.process();
      const [root, one, child] = [process.line('T'), process.line('T/1'), process.line('T/1/a')];
      for (const line of [root, one, child]) await line.hold();
      const sibling = await process.line('T/2').wait();
      const second = await process.line('T/1/b').wait();
      expect((await stage.order()).waiters).toEqual(holdIds([second, sibling]));
      await child.release();
      expect((await stage.order()).holds).toContain(second.holdId);
    });

    it('A try of a stranger or of a sibling does not overtake a branch that waits', async () => {
      const process = await stage.process();
      const [root, one] = [process.line('T'), process.line('T/1')];
      for (const line of [root, one]) await line.hold();
      const two = await process.line('T/2').wait();
      expect(await process.line('T/3').status({ queue: false })).toBe('refused');
      await one.release();
      expect((await stage.order()).holds).toContain(two.holdId);
    });

    it('Waiters in front keep their order among themselves, also by priority', async () => {
      const process = await stage.process();
      const [root, one] = [process.line('T'), process.line('T/1')];
      for (const line of [root, one]) await line.hold();
      const [two, three] = [await process.line('T/2').wait(), await process.line('T/3').wait()];
      const four = await process.line('T/4', { priority: 1 }).wait();
      expect((await stage.order()).waiters).toEqual(holdIds([four, two, three]));
    });

    it('A waiter in front has its place until it leaves, also when no ancestor holds any more', async () => {
      const process = await stage.process();
      const [root, one] = [process.line('T'), process.line('T/1')];
      for (const line of [root, one]) await line.hold();
      const stranger = await process.line('U').wait();
      const two = await process.line('T/2').wait();
      await root.release();
      await one.release();
      expect(await stage.order()).toEqual({ holds: [two.holdId], waiters: [stranger.holdId] });
    });

    it('`inspect` returns since when a waiter in front waits', async () => {
      const process = await stage.process();
      for (const owner of ['T', 'T/1']) await process.line(owner).hold();
      const reply = await process.line('T/2', { priority: 3 }).ask();
      const [waiter] = (await stage.inspect()).waiters;
      expect(Math.abs((waiter?.sinceMs ?? 0) - reply.nowMs)).toBeLessThan(2);
      expect(waiter).toMatchObject({ owner: 'T/2', priority: 3 });
    });
  });

  describe('C14 Waiters that are nested in the owner that was just granted are granted with it', () => {
    it('A nested waiter that was queued before its ancestor is granted with it, ahead of a stranger between them', async () => {
      const process = await stage.process();
      const holder = await process.line('V').acquired();
      const root = await process.line('T', { priority: 100 }).wait();
      const stranger = await process.line('U').wait();
      const child = await process.line('T/1').wait();
      await holder.release();
      const { holds, waiters } = await stage.order();
      expect([holds.sort(), waiters]).toEqual([holdIds([root, child]).sort(), [stranger.holdId]]);
    });

    it('Of siblings that wait, one is granted with their ancestor, and the others stand before strangers', async () => {
      const process = await stage.process();
      const holder = await process.line('V').acquired();
      const root = await process.line('T').wait();
      const stranger = await process.line('U').wait();
      const [one, two] = [await process.line('T/1').wait(), await process.line('T/2').wait()];
      await holder.release();
      expect(await stage.order()).toEqual({ holds: holdIds([root, one]), waiters: holdIds([two, stranger]) });
      await one.release();
      expect((await stage.order()).holds).toEqual(holdIds([root, two]));
    });

    it('A nested waiter advances when its ancestor is granted by a call of that one', async () => {
      const process = await stage.process();
      const [root, one] = [process.line('T'), process.line('T/1/a')];
      for (const line of [root, one]) await line.hold();
      const two = await process.line('T/2').wait();
      const cousin = await process.line('T/1/b').wait();
      await one.release();
      expect((await stage.order()).holds).toEqual(holdIds([root, two]));
      const three = await process.line('T/2/a').ask();
      expect(three.status).toBe('granted');
      expect((await stage.order()).waiters).toEqual([cousin.holdId]);
    });
  });

  describe('C15 A force release takes nested holds with the others', () => {
    it('All holds of a trace are taken, and a stranger is granted', async () => {
      const process = await stage.process();
      const lines = ['T', 'T/1', 'T/1/a'].map((owner) => process.line(owner));
      for (const line of lines) await line.hold();
      const stranger = await process.line('U').wait();
      const [hold] = (await stage.inspect()).holds;
      expect(await stage.store.forceRelease(key, hold?.fence ?? 0)).toBe(true);
      expect(await stage.order()).toEqual({ holds: [stranger.holdId], waiters: [] });
    });
  });
}

function describeNestedReaders({ stage, describe, it, itQueues, expect }: Contract): void {
  describe('C20 Nested readers and writers', () => {
    it('A branch may write if its ancestor is the only reader, and then excludes its siblings', async () => {
      const process = stage.deafProcess();
      const { fence } = await process.reader('T').hold();
      const writer = process.line('T/1');
      expect((await writer.hold()).fence).toBeGreaterThan(fence);
      for (const line of [process.reader('T/2'), process.line('T/2'), process.reader('U')])
        expect(await line.status({ queue: false })).toBe('refused');
      await writer.release();
      expect(await process.reader('U').status({ queue: false })).toBe('granted');
    });

    it('A branch that asks to write while its ancestor reads alongside a stranger is in conflict', async () => {
      const process = stage.deafProcess();
      await process.reader('T').hold();
      await process.reader('U').hold();
      for (const queue of [true, false]) expect(await process.line('T/1').status({ queue })).toBe('conflict');
      expect(await process.reader('T/1').status({ queue: false })).toBe('granted');
    });

    itQueues('A branch that asks to write while a sibling writes waits for it', async () => {
      const process = await stage.process();
      await process.reader('T').hold();
      const one = await process.line('T/1').acquired();
      const two = await process.line('T/2').wait();
      await one.release();
      expect((await stage.order()).holds).toContain(two.holdId);
    });

    itQueues('Readers in branches share the key, and a waiting stranger lets nested readers in', async () => {
      const process = await stage.process();
      await process.reader('T').hold();
      const writer = await process.line('U').wait();
      for (const owner of ['T/1', 'T/2', 'T/1/a']) expect(await process.reader(owner).status()).toBe('granted');
      expect((await stage.order()).waiters).toEqual([writer.holdId]);
    });
  });
}

function describeNestedPermits({ has, stage, describe, it, expect }: Contract): void {
  describe('C30 Nested holders of permits', () => {
    it('A descendant uses the permit of its ancestor, and siblings take a permit each', async () => {
      const process = stage.deafProcess();
      await process.permit(2, 'T').hold();
      await process.permit(2, 'T/1').hold();
      await process.permit(2, 'T/1/a').hold();
      expect(await process.permit(2, 'T/2').status({ queue: false })).toBe('granted');
      expect(await process.permit(2, 'T/3').status({ queue: false })).toBe('refused');
      expect(await process.permit(2, 'U').status({ queue: false })).toBe('refused');
    });

    it('A parent takes a permit in addition to the one of its child', async () => {
      const process = stage.deafProcess();
      await process.permit(2, 'T/1').hold();
      expect(await process.permit(2, 'T').status({ queue: false })).toBe('granted');
      const child = process.permit(2, 'T/1/a');
      expect(await child.status({ queue: false })).toBe('granted');
      expect(await process.permit(2, 'U').status({ queue: false })).toBe('granted');
    });

    if (!has('transfer')) return;
    it('Neither of a parent and its child, which use one permit, passes its hold to a stranger while the other holds', async () => {
      const process = stage.deafProcess();
      const [parent, child] = [process.permit(1, 'T'), process.permit(1, 'T/1')];
      for (const line of [parent, child]) await line.hold();
      for (const line of [parent, child]) expect((await line.transfer(process.permit(1))).status).toBe('shared');
      expect((await stage.order()).holds.sort()).toEqual(holdIds([parent, child]).sort());
      await parent.release();
      expect((await child.transfer(process.permit(1))).status).toBe('granted');
    });
  });
}

function describeInheritance({ has, stage, describe, it, expect }: Contract): void {
  describe('C29 A hold passes to an ancestor of its owner', () => {
    it('The ancestor has the hold with its fence, and other branches may enter beneath it', async () => {
      const process = await stage.process();
      const child = process.line('T/1');
      const { fence } = await child.hold();
      const stranger = process.line('U');
      if (has('queue')) await stranger.wait();
      const parent = process.line('T');
      expect(await child.transfer(parent)).toMatchObject({ status: 'granted', grant: { fence } });
      expect(await process.line('T/2').status({ queue: false })).toBe('granted');
      expect(await parent.renew(fence)).toMatchObject({ status: 'renewed' });
      expect(await stranger.status({ queue: false })).toBe('refused');
    });

    it('A hold alongside others passes to an ancestor, and a branch that waited is granted beneath it', async () => {
      if (!has('queue')) return;
      const process = await stage.process();
      const root = process.line('T');
      const child = process.line('T/1');
      for (const line of [root, child]) await line.hold();
      const two = await process.line('T/2').wait();
      const inherited = process.line('T');
      expect((await child.transfer(inherited, longMs)).status).toBe('granted');
      expect((await stage.order()).holds.sort()).toEqual(holdIds([root, inherited, two]).sort());
      // The reply does not say so: the process that made the call is told like any other.
      expect((await process.granted(two)).holdId).toBe(two.holdId);
    });
  });
}
