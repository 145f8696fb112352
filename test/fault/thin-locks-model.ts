import {
  type Command,
  fenceOf,
  holderOf,
  type Id,
  type Key,
  leaseTicks,
  type Protocol,
  type Reply,
  run,
} from './thin-locks-server.ts';

/** A call on its way: its commands, and how many of them the server has run. Only the last reply matters. */
interface Call {
  readonly commands: readonly Command[];
  readonly done: number;
  readonly reply?: Reply | undefined;
  readonly sentAt: number;
}

interface Client {
  readonly state: 'idle' | 'trying' | 'asking' | 'waiting' | 'held' | 'leaving' | 'gone' | 'crashed';
  readonly call?: Call | undefined;
  /** Until when it believes that it holds. */
  readonly deadline: number;
  /** The entry that is its hold, if the hold is thin. */
  readonly entry?: Id | undefined;
  /** Whether a copy of its acquire may still reach the server. */
  readonly wasResent: boolean;
  readonly wasRenewed: boolean;
}

/** What may still go wrong, and how often. */
export interface Budgets {
  /** A connection breaks: what it has sent may arrive late, and is sent again. */
  readonly losses: number;
  /** A client gives up before it has the lock. */
  readonly cancels: number;
  readonly crashes: number;
  /** A tick passes: a lease lasts two. */
  readonly ticks: number;
  /** The server's clock is set back by a tick. */
  readonly setbacks: number;
  readonly renewals: number;
}

/** All of the model: plain values, so that two states are the same when their JSON is. */
export interface World extends Budgets {
  readonly key: Key;
  /** The server's clock, and the one of the clients, which is never set. */
  readonly now: number;
  readonly mono: number;
  readonly clients: readonly Client[];
  /** The lease of each client. One that is longer than that of a thin hold is never thin. */
  readonly leases: readonly number[];
  /** What broken connections have yet to deliver. Nobody reads the replies. */
  readonly late: readonly (readonly Command[])[];
  readonly greatestFence: number;
  /** What was broken by the last step. */
  readonly broken: readonly string[];
}

export function firstWorld(leases: readonly number[], budgets: Budgets, key: Key): World {
  return {
    key,
    now: 1,
    mono: 1,
    clients: leases.map(() => idle),
    leases,
    late: [],
    greatestFence: -1,
    broken: [],
    ...budgets,
  };
}

const idle: Client = { state: 'idle', deadline: 0, wasResent: false, wasRenewed: false };

/** The steps that are sure to be taken some time. */
export function fairSteps(world: World, protocol: Protocol): World[] {
  const next: World[] = [];
  for (const [who, client] of world.clients.entries()) {
    const { call } = client;
    if (call === undefined) next.push(...send(world, who, client, protocol));
    else if (call.done < call.commands.length) next.push(execute(world, who, client, call, protocol));
    else next.push(checked(receive(world, who, client, call, protocol)));
  }
  const holder = holderOf(world.key, world.now);
  // Only time ends the hold of a client that has crashed.
  if (holder !== undefined && world.clients[holder]?.state === 'crashed') next.push(tick(world));
  const over = tombstoneOver(world);
  if (over !== undefined) next.push(over);
  return next;
}

/** What may go wrong, or happen at any time. */
export function mishaps(world: World, protocol: Protocol): World[] {
  const next: World[] = [];
  for (const [who, client] of world.clients.entries()) {
    const { state, call } = client;
    if (state === 'gone' || state === 'crashed') continue;
    if (call !== undefined && world.losses > 0) next.push(...lose(world, who, client, call));
    if (world.crashes > 0)
      next.push({
        ...put(later(world, call), who, { ...client, state: 'crashed', call: undefined }),
        crashes: world.crashes - 1,
      });
    const mayCancel = state === 'trying' || state === 'asking' || state === 'waiting';
    if (mayCancel && world.cancels > 0) next.push({ ...giveUp(world, who, client), cancels: world.cancels - 1 });
    if (state === 'held' && call === undefined && world.renewals > 0) {
      const renewal: Command = { name: 'renew', who, leaseTicks: leaseOf(world, who) };
      next.push({ ...sent(world, who, { ...client, wasRenewed: true }, [renewal]), renewals: world.renewals - 1 });
    }
  }
  for (const [n, [command, ...rest]] of world.late.entries()) {
    const dropped = { ...world, late: world.late.toSpliced(n, 1) };
    next.push(dropped);
    const [key] = run(world.key, command as Command, world.now, protocol);
    const late = rest.length > 0 ? world.late.with(n, rest) : dropped.late;
    next.push(checked({ ...world, key, late }));
  }
  if (world.ticks > 0) next.push(checked({ ...tick(world), ticks: world.ticks - 1 }));
  if (world.setbacks > 0) next.push({ ...world, now: world.now - 1, setbacks: world.setbacks - 1 });
  return next;
}

/** Whether everybody has had the lock, has given up, or has crashed. */
export function isDone(world: World): boolean {
  return world.clients.every(({ state }) => state === 'gone' || state === 'crashed');
}

function send(world: World, who: number, client: Client, protocol: Protocol): World[] {
  const ticks = leaseOf(world, who);
  const acquire: Command = { name: 'acquire', who, leaseTicks: ticks };
  switch (client.state) {
    case 'idle': {
      // It takes the script if it knows that others want the key.
      const byScript = sent(world, who, { ...client, state: 'asking' }, [acquire]);
      if (ticks > leaseTicks) return [byScript];
      const names = ['XADD', 'EXPIRE', 'FIRST'] as const;
      return [
        byScript,
        sent(
          world,
          who,
          { ...client, state: 'trying' },
          names.map((name) => ({ name, who })),
        ),
      ];
    }
    case 'asking':
    case 'waiting':
      return [sent(world, who, client, [acquire])];
    case 'held':
      return [leave(world, who, client, protocol)];
    case 'leaving':
      return [release(world, who, client)];
    default:
      return [];
  }
}

function leave(world: World, who: number, client: Client, protocol: Protocol): World {
  const { entry, wasResent, wasRenewed } = client;
  const leaving: Client = { ...client, state: 'leaving' };
  if (entry === undefined || !protocol.mayDelete(wasResent, wasRenewed)) return release(world, who, leaving);
  return sent(world, who, leaving, [{ name: 'XDEL', who, id: entry }]);
}

function release(world: World, who: number, client: Client): World {
  return sent(world, who, client, [{ name: 'release', who, tombstone: client.wasResent }]);
}

function execute(world: World, who: number, client: Client, call: Call, protocol: Protocol): World {
  const [key, reply] = run(world.key, call.commands[call.done] as Command, world.now, protocol);
  const done = call.done + 1;
  const ran = { ...call, done, reply: done === call.commands.length ? reply : undefined };
  return checked(put({ ...world, key }, who, { ...client, call: ran }));
}

/** The last reply of a call arrives. */
function receive(world: World, who: number, client: Client, call: Call, protocol: Protocol): World {
  const { commands, sentAt } = call;
  const reply = call.reply as Reply;
  const answered: Client = { ...client, call: undefined };
  switch (commands.at(-1)?.name) {
    case 'FIRST': {
      if (!protocol.isHeld(reply, who)) return put(world, who, { ...answered, state: 'asking' });
      const entry = (reply as Extract<Reply, { is: 'first' }>).id;
      return hold(world, who, { ...answered, entry }, fenceOf(entry), sentAt + leaseTicks);
    }
    case 'acquire':
      if (reply.is === 'granted') {
        const { entry, fence, leftTicks } = reply;
        return hold(world, who, { ...answered, entry }, fence, sentAt + leftTicks);
      }
      return put(world, who, { ...answered, state: reply.is === 'cancelled' ? 'leaving' : 'waiting' });
    case 'renew':
      if (client.state !== 'held') return put(world, who, answered);
      if (reply.is !== 'granted') return put(world, who, { ...answered, state: 'leaving' });
      return put(world, who, { ...answered, deadline: Math.max(client.deadline, sentAt + leaseOf(world, who)) });
    case 'XDEL':
      if (reply.is === 'deleted' || protocol.onNotDeleted === 'gone')
        return put(world, who, { ...answered, state: 'gone' });
      return put(world, who, answered);
    default:
      return put(world, who, { ...answered, state: 'gone' });
  }
}

function hold(world: World, who: number, client: Client, fence: number, deadline: number): World {
  // Over on arrival: it is released.
  if (deadline <= world.mono) return put(world, who, { ...client, state: 'leaving' });
  const held = put(world, who, { ...client, state: 'held', deadline });
  if (fence <= world.greatestFence) return { ...held, broken: ['the fence did not rise'] };
  return { ...held, greatestFence: fence };
}

/** A connection breaks. Some replies came before; the rest of the call is sent again, and a copy may arrive late. */
function lose(world: World, who: number, client: Client, call: Call): World[] {
  const losses = world.losses - 1;
  const late = later(world, call);
  const isAcquire = client.state === 'trying' || client.state === 'asking' || client.state === 'waiting';
  const resent: Client = { ...client, wasResent: client.wasResent || isAcquire };
  const next: World[] = [];
  for (let heard = 0; heard <= call.done && heard < call.commands.length; heard += 1) {
    next.push({ ...put(late, who, { ...resent, call: { ...call, done: heard, reply: undefined } }), losses });
  }
  return next;
}

function giveUp(world: World, who: number, client: Client): World {
  const wasResent = client.wasResent || client.call !== undefined;
  return put(later(world, client.call), who, { ...client, state: 'leaving', call: undefined, wasResent });
}

/** What of a call the server has not run yet may arrive late. */
function later(world: World, call: Call | undefined): World {
  const rest = call?.commands.slice(call.done).filter(({ name }) => name !== 'FIRST') ?? [];
  return rest.length > 0 ? { ...world, late: [...world.late, rest] } : world;
}

function tick(world: World): World {
  const now = world.now + 1;
  const mono = world.mono + 1;
  const { key } = world;
  const hasTombstones = key?.kind === 'record' && key.tombstones.length > 0;
  const isOver = key?.expiresAt !== undefined && key.expiresAt <= now && !hasTombstones;
  const clients = world.clients.map((client): Client => {
    const isLost = client.state === 'held' && client.deadline <= mono;
    return isLost ? { ...client, state: 'leaving', call: undefined } : client;
  });
  return { ...world, now, mono, clients, key: isOver ? undefined : key };
}

/** A tombstone lasts for as long as a copy of the acquire may arrive. */
function tombstoneOver(world: World): World | undefined {
  const { key, late } = world;
  if (key?.kind !== 'record') return undefined;
  const tombstones = key.tombstones.filter((who) =>
    late.some((commands) => commands.some((command) => command.who === who)),
  );
  return tombstones.length < key.tombstones.length ? { ...world, key: { ...key, tombstones } } : undefined;
}

/** Notes what must never be. */
function checked(world: World): World {
  const { clients, key, late, mono, now } = world;
  const broken = [...world.broken];
  const holder = holderOf(key, now);
  const isQuiet = late.length === 0 && clients.every(({ call, state }) => call === undefined && state !== 'crashed');
  if (clients.filter(({ state, deadline }) => state === 'held' && deadline > mono).length > 1)
    broken.push('two holders');
  if (holder !== undefined && clients[holder]?.state === 'gone') broken.push('held by nobody');
  if (key !== undefined && key.expiresAt === undefined && isQuiet) broken.push('a key that never ends');
  return broken.length > 0 ? { ...world, broken } : world;
}

function sent(world: World, who: number, client: Client, commands: readonly Command[]): World {
  return put(world, who, { ...client, call: { commands, done: 0, sentAt: world.mono } });
}

function leaseOf(world: World, who: number): number {
  return world.leases[who] as number;
}

/** Forgets what a client does not need any more: there are fewer worlds then. */
function put(world: World, who: number, client: Client): World {
  const { state } = client;
  const isOver = state === 'gone' || state === 'crashed';
  const kept = isOver ? { ...idle, state } : state === 'held' ? client : { ...client, deadline: 0 };
  return { ...world, clients: world.clients.with(who, kept) };
}
