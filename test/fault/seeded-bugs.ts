import { Command, type Redis } from 'ioredis';
import type { Clock } from '../../src/core/base/clock.ts';
import type {
  AcquireReply,
  AcquireTerms,
  HoldRequest,
  InspectReply,
  LockStore,
  ReleaseReply,
  ReleaseTerms,
  RenewReply,
  RenewTerms,
  StoreCapabilities,
  StoreGrant,
  StoreListener,
  Unsubscribe,
} from '../../src/core/model/store.ts';
import { acquire, release, renew } from '../../src/stores/redis/scripts.generated.ts';

/** Hands every call on as it is, and remembers the requests, so that a test can send one again. */
export class PassThrough implements LockStore {
  readonly capabilities: StoreCapabilities;
  protected readonly store: LockStore;
  protected readonly requests: HoldRequest[] = [];

  constructor(store: LockStore) {
    this.store = store;
    this.capabilities = store.capabilities;
  }

  /** The latest request of an owner. */
  requestOf(owner: string): HoldRequest {
    return this.requests.findLast((request) => request.owner === owner) as HoldRequest;
  }

  async acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    this.requests.push(request);
    return this.store.acquire(request, terms);
  }

  async renew(request: HoldRequest, terms: RenewTerms): Promise<RenewReply> {
    return this.store.renew(request, terms);
  }

  async release(request: HoldRequest, terms: ReleaseTerms): Promise<ReleaseReply> {
    return this.store.release(request, terms);
  }

  inspect(id: string): Promise<InspectReply> {
    return this.store.inspect(id);
  }

  forceRelease(id: string, fence: number): Promise<boolean> {
    return this.store.forceRelease(id, fence);
  }

  subscribe(process: string, listener: StoreListener): Promise<Unsubscribe> {
    return this.store.subscribe(process, listener);
  }
}

/** A bug: an owner's holds are a number. A release that comes twice takes two away. */
export class CountedHolds extends PassThrough {
  readonly #gone = new Set<string>();

  override async release(request: HoldRequest, terms: ReleaseTerms): Promise<ReleaseReply> {
    const isRepeat = this.#gone.has(request.holdId);
    const other = this.requests.find(({ owner, holdId }) => owner === request.owner && !this.#gone.has(holdId));
    const taken = isRepeat && other !== undefined ? other : request;
    this.#gone.add(taken.holdId);
    return this.store.release(taken, terms);
  }
}

/** A bug: a grant is believed to last from when its reply came: the time that its call took is not counted. */
export class NoElapsedCheck extends PassThrough {
  /** That of the processes with the bug. */
  readonly clock: Clock;
  readonly #trueClock: Clock;
  #uncountedMs = 0;

  constructor(store: LockStore, clock: Clock) {
    super(store);
    this.#trueClock = clock;
    this.clock = {
      now: () => {
        const { monoMs, wallMs } = clock.now();
        return { monoMs: monoMs - this.#uncountedMs, wallMs: wallMs - this.#uncountedMs };
      },
      after: (ms, run) => clock.after(ms, run),
      jitter: () => clock.jitter(),
      randomId: () => clock.randomId(),
    };
  }

  override async acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    const sent = this.#trueClock.now();
    const reply = await super.acquire(request, terms);
    this.#uncountedMs += this.#trueClock.now().monoMs - sent.monoMs;
    return reply;
  }
}

/** A bug: who was told to wait is answered from memory, and never asks again. */
export class NoPoll extends PassThrough {
  readonly #answers = new Map<string, AcquireReply>();

  override async acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    const known = this.#answers.get(request.holdId);
    if (known !== undefined) return { ...known, nowMs: (await this.store.inspect(request.id)).nowMs } as AcquireReply;
    const reply = await super.acquire(request, terms);
    if (reply.status === 'queued') this.#answers.set(request.holdId, { ...reply, isNew: false });
    return reply;
  }
}

/** A bug: the fence is a counter that the store loses with its data. */
export class PlainCounter extends PassThrough {
  #count = 0;
  readonly #counts = new Map<number, number>();

  /** The store lost its data. */
  reset(): void {
    this.#count = 0;
  }

  override async acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    const reply = await super.acquire(request, terms);
    return reply.status === 'granted' ? { ...reply, grant: this.#counted(reply.grant) } : reply;
  }

  #counted(grant: StoreGrant): StoreGrant {
    let count = this.#counts.get(grant.fence);
    if (count === undefined) {
      this.#count += 1;
      count = this.#count;
      this.#counts.set(grant.fence, count);
    }
    return { ...grant, fence: count };
  }
}

/** A change to a script: code of it, and what stands in its place. */
export interface ScriptBug {
  readonly script: 'acquire' | 'release' | 'renew';
  readonly code: string;
  readonly instead: string;
}

const scripts = { acquire, release, renew };

/** A client that sends a script with a bug in place of the right one. */
export function withScriptBug(client: Redis, { script, code, instead }: ScriptBug): Redis {
  const { sha1, source } = scripts[script];
  const spoilt = source.replace(code, () => instead);
  if (spoilt === source) throw new Error(`Expected the script ${script} to have the code ${code}`);
  return new Proxy(client, {
    get(target, name) {
      if (name === 'sendCommand') {
        return (command: Command) => {
          const [digest, ...args] = command.args;
          if (digest !== sha1) return target.sendCommand(command);
          return target.sendCommand(new Command('eval', [spoilt, ...args], { replyEncoding: 'utf8' }));
        };
      }
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

export const releaseWithoutOwnerCheck: ScriptBug = {
  script: 'release',
  code: 'onlyId == hold and',
  instead: 'onlyId and',
};

export const renewalThatRecreates: ScriptBug = {
  script: 'renew',
  code: 'if onlyId ~= hold and not held then',
  instead: `if onlyId ~= hold then
  local untilMs = nowMs + leaseMs
  redis.call('HSET', KEYS[1], 'ends', untilMs, 'hold', hold, 'owner', 'owner', 'process', 'process')
  return {'renewed', nowMs, untilMs}
end
if onlyId ~= hold and not held then`,
};

export const handOffToTheDead: ScriptBug = {
  script: 'release',
  code: 'local function judge(name, known)',
  instead: "local function judge(name, known)\ndo return 'live' end",
};
