import { type LockImage, MemoryLock } from '../../src/core/machine/lock-state.ts';
import { acquire, type LockHost, release } from '../../src/core/machine/operations.ts';
import type { AcquireReply, HoldRequest, ReleaseReply, StoreGrant } from '../../src/core/model/store.ts';

const leaseMs = 10;
const actors = [
  { process: 'P', owner: 'A' },
  { process: 'Q', owner: 'B' },
  { process: 'Q', owner: 'A' },
] as const;

type Reply = AcquireReply | ReleaseReply;

/** A call on its way to the store, or its reply on the way back. */
interface Call {
  readonly operation: 'acquire' | 'release';
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
  /** The greatest fence that anybody held with, and who. */
  readonly greatest: { readonly fence: number; readonly owner: string };
  /** What was broken on the way here. */
  readonly broken?: string | undefined;
}

/** Whether the store does as it should; a test of the model itself has it do otherwise. */
export interface Store {
  readonly acquire: typeof acquire;
  readonly release: typeof release;
}

export const realStore: Store = { acquire, release };

export function firstWorld(budgets: Pick<World, 'losses' | 'lapses' | 'cancels'>): World {
  return {
    image: { holds: [], queue: [], processes: [] },
    buried: [],
    nowMs: 0,
    lastFence: 0,
    actors: actors.map(() => ({ state: 'idle', deadlineMs: 0, fence: 0 })),
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
  if (actor.state === 'gone') return [];
  const operation = actor.state === 'held' || actor.state === 'leaving' ? 'release' : 'acquire';
  const state = { idle: 'asking', held: 'leaving' } as const;
  const after = actor.state === 'idle' || actor.state === 'held' ? state[actor.state] : actor.state;
  return [put(world, n, { ...actor, state: after, call: { operation, sentMs: world.nowMs } })];
}

function execute(world: World, n: number, call: Call, store: Store): World {
  const lock = MemoryLock.of(structuredClone(world.image) as LockImage);
  const buried = new Map(world.buried);
  const messages = [...world.messages];
  let { lastFence } = world;
  const request = requestOf(n);
  const host: LockHost = {
    nowMs: world.nowMs,
    caller: request.process,
    nextFence: () => {
      lastFence = Math.max(lastFence + 1, world.nowMs * 1000);
      return lastFence;
    },
    isReachable: () => true,
    tell: (_, message) => {
      if (message.kind !== 'granted') return;
      const { holdId, fence, endMs } = message.grant;
      messages.push({ to: Number(holdId), fence, endMs });
    },
    buried: (holdId) => buried.get(holdId),
    bury: ({ holdId }, status) => void buried.set(holdId, status),
  };
  const terms = { leaseMs, queue: true, maxWaiters: 9, livenessMs: 1_000, tombstoneMs: 1_000 };
  const reply =
    call.operation === 'acquire'
      ? store.acquire(lock, host, request, terms)
      : store.release(lock, host, request, terms);
  const after = { ...world, image: lock.image, buried: [...buried], lastFence, messages };
  return put(after, n, { ...(world.actors[n] as Actor), call: { ...call, reply } });
}

/** A reply arrives: it says what became of its own call, and names the claims of its process. */
function answer(world: World, n: number, { operation, sentMs, reply }: Call): World {
  const actor = world.actors[n] as Actor;
  const { claims, nowMs } = reply as Reply;
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
  const { owner } = actors[n] as { owner: string };
  const { greatest } = world;
  const others = world.actors.filter(
    ({ state, deadlineMs: until }, m) =>
      m !== n && state === 'held' && until > world.nowMs && actors[m]?.owner !== owner,
  );
  const rises = owner === greatest.owner ? fence >= greatest.fence : fence > greatest.fence;
  const broken = others.length > 0 ? 'two owners' : rises ? world.broken : 'the fence did not rise';
  const held = put(world, n, { ...actor, state: 'held', deadlineMs, fence, call: undefined });
  return { ...held, greatest: { fence, owner }, broken: world.broken ?? broken };
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

function requestOf(n: number): HoldRequest {
  const { process, owner } = actors[n] as { process: string; owner: string };
  return { id: 'k', holdId: String(n), owner, process, claimMs: leaseMs, mode: 'write', priority: 0 };
}
