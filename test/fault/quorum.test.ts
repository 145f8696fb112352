import { setTimeout as sleep } from 'node:timers/promises';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { type Client, Crew } from './crew.ts';
import { type Entry, violationsOf } from './history.ts';
import { isLong, isWhole, printSeed, seed, seeded } from './seed.ts';

printSeed('quorum');

const leaseMs = 800;
/** What a node that has restarted must be up for before it has a say. */
const maxLeaseMs = 1_500;
/** How long a node is paused: longer than a lease. */
const pausedMs = 1_200;
/** How long a node is gone: so short that what it forgets is still held. */
const goneMs = 100;

interface Fault {
  readonly name: string;
  /** How many nodes it is for. */
  readonly count: number;
  play(nodes: readonly RedisServer[]): Promise<unknown>;
}

async function killed(node: RedisServer): Promise<void> {
  await node.kill();
  await sleep(goneMs);
  await node.restart();
}

async function paused(node: RedisServer): Promise<void> {
  node.pause();
  await sleep(pausedMs);
  node.resume();
}

const each = (play: (node: RedisServer) => Promise<void>) => (nodes: readonly RedisServer[]) =>
  Promise.all(nodes.map(play));

const faults: readonly Fault[] = [
  { name: 'one node killed, and started empty', count: 1, play: each(killed) },
  { name: 'two nodes killed, and started empty', count: 2, play: each(killed) },
  { name: 'one node paused', count: 1, play: each(paused) },
  { name: 'two nodes paused', count: 2, play: each(paused) },
  {
    name: 'one node killed, another one paused',
    count: 2,
    play: ([one, other]) => Promise.all([killed(one!), paused(other!)]),
  },
  { name: 'three nodes killed, and started empty', count: 3, play: each(killed) },
  { name: 'three nodes paused', count: 3, play: each(paused) },
  {
    name: 'all nodes started empty, one right after the other',
    count: 5,
    play: async (nodes) => {
      for (const node of nodes) await node.restart();
    },
  },
];

/** One of them in the short form, which the seed chooses; each once in the whole matrix; all of them, again and again, in the long form. */
const played = isWhole ? faults : [faults[seed % faults.length] as Fault];
const leastHolds = isLong ? 5_000 : isWhole ? 300 : 1;

describe('Locks of four processes on five nodes', () => {
  let nodes: RedisServer[];
  let crew: Crew;
  let clients: Client[];
  beforeEach(async () => {
    nodes = await Promise.all([1, 2, 3, 4, 5].map(() => startRedis()));
    crew = new Crew();
    const store = { kind: 'quorum', ports: nodes.map(({ port }) => port), maxLeaseMs } as const;
    const locks = { leaseMs, pollMs: 100, waitMs: 10_000 };
    clients = await Promise.all([1, 2, 3, 4].map(() => crew.join({ store, locks })));
  });
  afterEach(async () => {
    await crew.stop();
    await Promise.all(nodes.map((node) => node.stop()));
  });

  const now = (): number => Number(process.hrtime.bigint()) / 1e6;

  /** Each process locks keys for a moment and others for longer than their leases, until `isOver` says so. */
  async function work(isOver: () => boolean, onHolds: (count: number) => void): Promise<void> {
    const workOf = async (client: Client, n: number): Promise<void> => {
      for (let round = 0; !isOver(); round++) {
        const from = seed + 100 * round + n;
        const short = client.work(['order:1', 'order:2'], 2, 500, from);
        const long = client.work(['order:3', 'order:4', 'order:5'], 2, 500, from, { holdMs: 2 * leaseMs });
        onHolds((await short) + (await long));
      }
    };
    await Promise.all(clients.map(workOf));
  }

  it('[quorum-01] No two owners hold a key, and no fence goes back, whatever nodes are killed, paused or started empty', async () => {
    const random = seeded(seed);
    const moments: Moment[] = [];
    let [holds, isOver] = [0, false];
    const working = work(
      () => isOver,
      (count) => {
        holds += count;
      },
    );
    while (moments.length < played.length || holds < leastHolds) {
      const fault = played[moments.length % played.length] as Fault;
      const from = now();
      await fault.play(nodes.toSorted(() => random() - 0.5).slice(0, fault.count));
      // Sometimes the next one comes before a node that has started has a say.
      await sleep(2 * maxLeaseMs * random());
      moments.push({ fault, from, until: now() });
    }
    isOver = true;
    await working;
    await crew.end();

    const { history } = crew;
    const violations = violationsOf(history, { fifo: false });
    process.stdout.write(tableOf(history, moments, violations.length));
    expect(violations).toEqual([]);
    expect(history.filter(({ kind }) => kind === 'granted').length).toBeGreaterThanOrEqual(leastHolds);
  }, 1_200_000);
});

interface Moment {
  readonly fault: Fault;
  readonly from: number;
  readonly until: number;
}

/** For each fault: how often it was played, how many grants there were meanwhile, and the longest time without one. */
function tableOf(history: readonly Entry[], moments: readonly Moment[], violations: number): string {
  const grants = history.filter(({ kind }) => kind === 'granted').map(({ at }) => at);
  const longestGap = ({ from, until }: Moment): number => {
    const next = grants.find((at) => at >= until) ?? until;
    const marks = [from, ...grants.filter((at) => at > from && at < until), next];
    return Math.max(...marks.slice(1).map((at, n) => at - marks[n]!));
  };
  const rows = played.map((fault) => {
    const own = moments.filter((moment) => moment.fault === fault);
    const count = grants.filter((at) => own.some(({ from, until }) => at >= from && at < until)).length;
    const gaps = own.map(longestGap).toSorted((a, b) => a - b);
    const [middle, worst] = [gaps[Math.floor(gaps.length / 2)], gaps.at(-1)].map((ms) => Math.round(ms ?? 0));
    return `| ${fault.name} | ${own.length} | ${count} | ${middle} | ${worst} |`;
  });
  const head = ['| fault | times | grants | longest ms without one: median | worst |', '|---|---|---|---|---|'];
  return `${[...head, ...rows].join('\n')}\nall: ${grants.length} grants, ${violations} violations\n`;
}
