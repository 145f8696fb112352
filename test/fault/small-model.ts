import { type LockImage, MemoryLock } from '../../src/core/machine/lock-state.ts';
import { acquire, type LockHost, release, transfer } from '../../src/core/machine/operations.ts';
import { isAncestor } from '../../src/core/model/owner.ts';
import type { AcquireReply, HoldRequest, ReleaseReply, StoreGrant, TransferReply } from '../../src/core/model/store.ts';

const leaseMs = 10;

/** One acquire of a play: its process and owner, and what it has to do with others, by their places in the cast. */
export interface Role {
  readonly process: string;
  readonly owner: string;
  /** Whose work it is a part of: that one releases nothing before this one has ended. */
  readonly partOf?: number;
  /** Whether it is called only while that one holds. */
  readonly isNested?: boolean;
  /** It does not release: its hold passes to this role, which does nothing else to get one. */
  readonly passesTo?: number;
  /** The branch that it is in truth, if the owner that it gives is wrong. */
  readonly branch?: string;
}

/** Two owners, three acquires. */
export const strangers: readonly Role[] = [
  { process: 'P', owner: 'A' },
  { process: 'Q', owner: 'B' },
  { process: 'Q', owner: 'A' },
];

type Reply = AcquireReply | ReleaseReply | TransferReply;

/** A call on its way to the store, or its reply on the way back. */
interface Call {
  readonly operation: 'acquire' | 'release' | 'transfer';
  readonly sentMs: number;
  readonly reply?: Reply;
}

interface Actor {
  readonly state: 'idle' | 'asking' | 'waiting' | 'held' | 'leaving' | 'gone';
  readonly deadlineMs: number;
  readonly fence: number;
  readonly call?: Call | undefined;
}

/** All of the model: plain values, so that two states are the same when their JSON is. */
export interface World {
  readonly cast: readonly Role[];
  readonly image: LockImage;
  readonly buried: readonly (readonly [string, ReleaseReply['status']])[];
  readonly nowMs: number;
  readonly lastFence: number;
  readonly actors: readonly Actor[];
  /** Grants on their way, by actor. */
  readonly messages: readonly { readonly to: number; readonly fence: number; readonly endMs: number }[];
  /** What may still go wrong: a call, reply or message lost; a lease's time passing; a waiter giving up. */
  readonly losses: number;
  readonly lapses: number;
  readonly cancels: number;
  /** Whether waiters poll. Without it, they must be served by hand-offs alone. */
  readonly polls: boolean;
  /** The greatest fence that anybody held with, and who. */
  readonly greatest: { readonly fence: number; readonly owner: string };
  /** What was broken on the way here. */
  readonly broken?: string | undefined;
}

/** Whether the store does as it should; a test of the model itself has it do otherwise. */
export interface Store {
  readonly acquire: typeof acquire;
  readonly release: typeof release;
  readonly transfer: typeof transfer;
}

export const realStore: Store = { acquire, release, transfer };

export type Budgets = Pick<World, 'losses' | 'lapses' | 'cancels' | 'polls'>;

export function firstWorld(cast: readonly Role[], budgets: Budgets): World {
  return {
    cast,
    image: { fence: 0, holds: [], queue: [], processes: [] },
    buried: [],
    nowMs: 0,
    lastFence: 0,
    actors: cast.map(() => ({ state: 'idle', deadlineMs: 0, fence: 0 })),
    messages: [],
    greatest: { fence: 0, owner: '' },
    ...budgets,
  };
}

/** What may go wrong. */
export function mishaps(world: World): World[] {
  const next: World[] = [];
  const { losses, lapses, cancels } = world;
  for (const [n, actor] of world.actors.entries()) {
    if (losses > 0 && actor.call !== undefined) next.push({ ...loseCall(world, n), losses: losses - 1 });
    if (cancels > 0 && actor.state === 'waiting') {
      next.push({ ...put(world, n, { ...actor, state: 'leaving', call: undefined }), cancels: cancels - 1 });
    }
  }
  for (const [at] of world.messages.entries()) {
    if (losses > 0) next.push({ ...world, messages: world.messages.toSpliced(at, 1), losses: losses - 1 });
  }
  if (lapses > 0) next.push({ ...lapse(world), lapses: lapses - 1 });
  return next;
}

/** The steps that are sure to be taken some time: calls, replies, messages, polls and releases. */
export function fairSteps(world: World, store: Store): World[] {
  const next: World[] = [];
  for (const [n, actor] of world.actors.entries()) {
    if (actor.call === undefined) next.push(...send(world, n, actor));
    else
      next.push(actor.call.reply === undefined ? execute(world, n, actor.call, store) : answer(world, n, actor.call));
  }
  for (const [at, message] of world.messages.entries()) {
    // One that overtakes the reply to its own acquire is kept until then.
    if (world.actors[message.to]?.state === 'asking') continue;
    const heard = { ...world, messages: world.messages.toSpliced(at, 1) };
    next.push(grant(heard, message.to, message.fence, message.endMs));
  }
  return next;
}

/** Whether everybody has had the lock, or has given up. */
export function isDone(world: World): boolean {
  return world.actors.every(({ state }) => state === 'gone');
}

function send(world: World, n: number, actor: Actor): World[] {
  const role = world.cast[n] as Role;
  if (actor.state === 'gone' || !mayAct(world, n, actor, role)) return [];
  if (actor.state === 'waiting' && !world.polls) return [];
  const call = (operation: Call['operation']): Call => ({ operation, sentMs: world.nowMs });
  if (actor.state === 'held' && role.passesTo !== undefined)
    return [put(world, n, { ...actor, call: call('transfer') })];
  const isOver = actor.state === 'held' || actor.state === 'leaving';
  const state = { idle: 'asking', held: 'leaving' } as const;
  const after = actor.state === 'idle' || actor.state === 'held' ? state[actor.state] : actor.state;
  return [put(world, n, { ...actor, state: after, call: call(isOver ? 'release' : 'acquire') })];
}

/** A nested call is made while its caller holds; and nobody releases before its parts have ended. */
function mayAct({ cast, actors }: World, n: number, { state }: Actor, { isNested, partOf }: Role): boolean {
  const isGiven = cast.some(({ passesTo }) => passesTo === n);
  if (state === 'idle') return !isGiven && (!isNested || actors[partOf as number]?.state === 'held');
  return state !== 'held' || cast.every((role, m) => role.partOf !== n || actors[m]?.state === 'gone');
}

function execute(world: World, n: number, call: Call, store: Store): World {
  const lock = MemoryLock.of(structuredClone(world.image) as LockImage);
  const buried = new Map(world.buried);
  const messages = [...world.messages];
  let { lastFence } = world;
  const request = requestOf(world, n);
  const host: LockHost = {
    nowMs: world.nowMs,
    caller: request.process,
    nextFence: () => {
      lastFence = Math.max(lastFence + 1, world.nowMs * 1000);
      return lastFence;
    },
    isReachable: () => true,
    send: (_, message) => {
      if (message.kind !== 'granted') return;
      const { holdId, fence, endMs } = message.grant;
      messages.push({ to: Number(holdId), fence, endMs });
    },
    buried: (holdId) => buried.get(holdId),
    bury: ({ holdId }, status) => void buried.set(holdId, status),
  };
  const terms = { leaseMs, queue: true, maxWaiters: 9, livenessMs: 1_000, tombstoneMs: 1_000 };
  const reply = reach();
  function reach(): Reply {
    if (call.operation === 'acquire') return store.acquire(lock, host, request, terms);
    if (call.operation === 'release') return store.release(lock, host, request, terms);
    return store.transfer(lock, host, request, requestOf(world, world.cast[n]?.passesTo as number), terms);
  }
  const broken = world.broken ?? intruder(world, lock);
  const after = { ...world, image: lock.image, buried: [...buried], lastFence, messages, broken };
  return put(after, n, { ...(world.actors[n] as Actor), call: { ...call, reply } });
}

/** A reply arrives: it says what became of its own call, and names the claims of its process. */
function answer(world: World, n: number, { operation, sentMs, reply }: Call): World {
  const actor = world.actors[n] as Actor;
  if (operation === 'transfer') return passed(world, n, sentMs, reply as TransferReply);
  const { claims, nowMs } = reply as AcquireReply | ReleaseReply;
  let next = put(world, n, { ...actor, call: undefined });
  if (operation === 'release') next = put(next, n, { ...actor, state: 'gone', call: undefined });
  else if (reply?.status === 'granted') next = grant(next, n, reply.grant.fence, sentMs + reply.grant.endMs - nowMs);
  else if (reply?.status === 'queued' && actor.state === 'asking') {
    next = put(next, n, { ...actor, state: 'waiting', call: undefined });
  }
  for (const claim of claims) {
    const to = Number(claim.holdId);
    if (next.actors[to]?.state === 'asking') next = keepEarly(next, to, claim);
    else next = grant(next, to, claim.fence, claim.endMs);
  }
  return next;
}

/** A hold was passed on. Without one, what was to get it has nothing to do. */
function passed(world: World, n: number, sentMs: number, reply: TransferReply): World {
  const to = world.cast[n]?.passesTo as number;
  const end = put(world, n, { ...(world.actors[n] as Actor), state: 'gone', call: undefined });
  if (reply.status !== 'granted') return put(end, to, { ...(end.actors[to] as Actor), state: 'leaving' });
  const { fence, endMs } = reply.grant;
  const waiting = put(end, to, { ...(end.actors[to] as Actor), state: 'waiting' });
  return grant(waiting, to, fence, sentMs + endMs - reply.nowMs);
}

/** A grant that comes before the reply to its own acquire; one that is known is no other. */
function keepEarly(world: World, to: number, { fence, endMs }: StoreGrant): World {
  if (world.messages.some((message) => message.to === to && message.fence === fence)) return world;
  return { ...world, messages: [...world.messages, { to, fence, endMs }] };
}

function grant(world: World, n: number, fence: number, deadlineMs: number): World {
  const actor = world.actors[n] as Actor;
  if (actor.state !== 'asking' && actor.state !== 'waiting') return world;
  // Over on arrival: a first answer is given back, a waiter asks again.
  if (deadlineMs <= world.nowMs) {
    return actor.state === 'asking' ? put(world, n, { ...actor, state: 'leaving', call: undefined }) : world;
  }
  const { owner } = world.cast[n] as Role;
  const { greatest } = world;
  const others = world.actors.filter(
    ({ state, deadlineMs: until }, m) => m !== n && state === 'held' && until > world.nowMs && !isOneLine(world, n, m),
  );
  const trace = owner.replace(/\/.*/, '');
  const rises = trace === greatest.owner ? fence >= greatest.fence : fence > greatest.fence;
  const broken = others.length > 0 ? 'two owners' : rises ? world.broken : 'the fence did not rise';
  const held = put(world, n, { ...actor, state: 'held', deadlineMs, fence, call: undefined });
  return { ...held, greatest: { fence, owner: trace }, broken: world.broken ?? broken };
}

/** Whether one is nested in the other, or both are one branch. */
function isOneLine({ cast }: World, n: number, m: number): boolean {
  const [one = '', other = ''] = [n, m].map((each) => cast[each]?.branch ?? cast[each]?.owner);
  return isAncestor(one, other) || isAncestor(other, one);
}

/** A grant beside a hold that is no ancestor's: the clients may never overlap, but the store let it in. */
function intruder({ cast, image, nowMs }: World, lock: MemoryLock): string | undefined {
  const before = image.holds.filter(({ endMs, request }) => endMs > nowMs && lock.holds.get(request.holdId));
  const added = lock.holds.all.filter(
    ({ request }) => !image.holds.some((hold) => hold.request.holdId === request.holdId),
  );
  // A hold that passes to an ancestor is beside what is nested in it.
  const granted = added.filter(({ request }) => !cast.some(({ passesTo }) => String(passesTo) === request.holdId));
  const isBeside = before.some((hold) => granted.some(({ request }) => !isAncestor(hold.request.owner, request.owner)));
  return isBeside ? 'let in beside another branch' : undefined;
}

/** Who asked for the first time has failed, and gives back what may be there; the others try again. */
function loseCall(world: World, n: number): World {
  const actor = world.actors[n] as Actor;
  return put(world, n, { ...actor, state: actor.state === 'asking' ? 'leaving' : actor.state, call: undefined });
}

/** A lease's time passes: who holds has lost the hold, and gives it back all the same. */
function lapse(world: World): World {
  const nowMs = world.nowMs + leaseMs;
  const after = world.actors.map(
    (actor): Actor => (actor.state === 'held' && actor.deadlineMs <= nowMs ? { ...actor, state: 'leaving' } : actor),
  );
  return { ...world, nowMs, actors: after };
}

function put(world: World, n: number, actor: Actor): World {
  return { ...world, actors: world.actors.with(n, actor) };
}

function requestOf({ cast }: World, n: number): HoldRequest {
  const { process, owner } = cast[n] as Role;
  return { id: 'k', holdId: String(n), owner, process, claimMs: leaseMs, mode: 'write', priority: 0 };
}
