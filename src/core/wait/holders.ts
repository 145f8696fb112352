import { lastedMs, wholeMs } from '../base/clock.ts';
import type { StoreAccess } from '../client/access.ts';
import type { StoreClient } from '../client/store-client.ts';
import type { LockName } from '../model/key.ts';
import type { LockHolder } from '../model/lock-holder.ts';
import { lockInfo } from '../model/lock-info.ts';
import type { WaitQueue } from './local-queue.ts';
import type { AcquireTask } from './task.ts';

/** The error of an acquire that gives up is late by so much at most. */
const lookTimeoutMs = 50;

/** Many may give up at the same time: for each key the store is asked once in this time. */
const lookEveryMs = 1000;

/** Who holds the key that a waiter of this queue gives up, if the store says so at once. Never rejects. */
export async function holderOf(
  { client, clock }: StoreAccess,
  queue: WaitQueue,
  { key, category, request }: AcquireTask,
): Promise<LockHolder | undefined> {
  const now = clock.now();
  let last = queue.holderLook;
  if (last === undefined || lastedMs(now, last.at) >= lookEveryMs) {
    last = { at: now, holder: look(client, { key, category, id: request.id }) };
    queue.holderLook = last;
  }
  const { at, holder } = last;
  const found = await holder;
  return found && { ...found, heldMs: found.heldMs + wholeMs(now, at) };
}

async function look(client: StoreClient, name: LockName): Promise<LockHolder | undefined> {
  if (!client.outage.isOpen) return undefined;
  try {
    const reply = await client.look(name.id, lookTimeoutMs);
    // A reply may list a thousand of each.
    const [hold] = lockInfo(name, { ...reply, holds: reply.holds.slice(0, 1), waiters: [] }).holds;
    return hold && { owner: hold.owner, instance: hold.instance, heldMs: hold.heldMs, waiters: reply.waiters.length };
  } catch {
    // The acquire has timed out, whatever the store says to this.
    return undefined;
  }
}
