import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { PostgresStore } from '../../src/stores/postgres/postgres-store.ts';
import { PostgresPair } from '../support/postgres/pair.ts';
import { TcpProxy } from '../support/processes/tcp-proxy.ts';
import { until } from '../support/until.ts';
import { type Client, Crew } from './crew.ts';
import { type Entry, violationsOf } from './history.ts';
import { type Counted, counterTable } from './processes/counter.ts';
import { poolAt } from './processes/open-store.ts';
import { isLong, printSeed, seed } from './seed.ts';

printSeed('failover');

const leaseMs = 2_000;
const locks = { leaseMs, claimMs: 1_500, pollMs: 200, storeTimeoutMs: 1_000, waitMs: 30_000, drainMs: 0 };
const keys = ['order:1', 'order:2'];
/** Longer than a lease: what was granted by a server that is not the primary any more would be granted by the other one as well. */
const splitMs = leaseMs + 1_000;

/** What happens to the primary before the standby takes its place, and to the half of the clients that does not follow at once. */
type Fault = 'killed' | 'paused' | 'cut off' | 'cut off and restarted';
const faults: readonly Fault[] = ['killed', 'paused', 'cut off', 'cut off and restarted'];

type Grant = Pick<Entry, 'at' | 'process'>;

/** Two servers, a proxy to the primary for each half of the clients, and the processes. */
class Failovers {
  readonly pair: PostgresPair;
  readonly #halves: readonly [TcpProxy, TcpProxy];
  readonly #crew = new Crew();
  readonly #clients: Client[] = [];
  readonly #grants: Grant[] = [];
  /** How much of each client's file was read. */
  readonly #read = new Map<Client, number>();
  /** Milliseconds from the fault, and from the promotion, to the next grant, by fault. */
  readonly times: { readonly fault: Fault; readonly sinceFaultMs: number; readonly sincePromotionMs: number }[] = [];

  private constructor(pair: PostgresPair, halves: readonly [TcpProxy, TcpProxy]) {
    this.pair = pair;
    this.#halves = halves;
  }

  static async start(isSynchronous: boolean): Promise<Failovers> {
    const pair = await PostgresPair.start({ isSynchronous });
    const halves = [pair.primary.port, pair.primary.port].map((port) => TcpProxy.start(port, 'any'));
    return new Failovers(pair, (await Promise.all(halves)) as [TcpProxy, TcpProxy]);
  }

  /** Four processes that count. */
  async begin(): Promise<void> {
    const pool = poolAt(this.pair.primary.port);
    await new PostgresStore({ pool }).migrate();
    await pool.query(`${counterTable}; INSERT INTO counters (key) SELECT unnest('{${keys.join()}}'::text[])`);
    await pool.end();
    for (const half of [0, 1, 0, 1]) {
      const { port } = this.#halves[half] as TcpProxy;
      const client = await this.#crew.join({ store: { kind: 'postgres', port }, locks });
      this.#clients.push(client);
      await client.count({ port, keys, lines: 2, seed: seed + this.#clients.length });
    }
    await this.granted(20);
  }

  /** One failover. Resolves when the former primary is the standby, and the clients are all served. */
  async failOver(fault: Fault): Promise<void> {
    const [first, second] = this.#halves;
    const former = this.pair.primary;
    const faultAt = now();
    if (fault === 'killed') await former.kill();
    if (fault === 'paused') await former.pause();
    if (fault.startsWith('cut off')) this.pair.cutOff();
    if (fault === 'cut off and restarted') {
      // So that there are commits which only this server knows.
      await sleep(500);
      await former.kill();
      await former.restart();
    }
    await this.pair.promote();
    const promotedAt = now();
    second.lead(this.pair.primary.port);
    second.cut();
    const nextAt = (await until(() => this.#grantsAfter(promotedAt)[0]))?.at as number;
    this.times.push({ fault, sinceFaultMs: nextAt - faultAt, sincePromotionMs: nextAt - promotedAt });
    if (fault !== 'killed') {
      await sleep(splitMs);
      // It goes on with what it was about to do.
      if (fault === 'paused') await former.resume();
      if (fault === 'paused') await sleep(500);
    }
    first.lead(this.pair.primary.port);
    first.cut();
    await former.remove();
    await this.pair.addStandby();
    await this.granted(20);
  }

  /** Ends the counting, and says what was broken. */
  async end(): Promise<{ holds: number; violations: string[] }> {
    const counted = await Promise.all(this.#clients.map((client) => client.stopCounting()));
    await this.#crew.end();
    const history = this.#crew.history;
    const violations = violationsOf(history, { fifo: false }).map(({ rule, text }) => `${rule}: ${text}`);
    const rows = await this.pair.primary.query<{ key: string; n: string }>('SELECT key, n FROM counters');
    for (const { key, n } of rows) {
      const sum = (of: keyof Counted) => counted.reduce((all, each) => all + (each[of][key] ?? 0), 0);
      const [least, most] = [sum('confirmed'), sum('confirmed') + sum('unclear')];
      if (Number(n) < least) violations.push(`update: ${key}: ${least} were confirmed, ${n} are left`);
      if (Number(n) > most) violations.push(`update: ${key}: ${most} were made, there are ${n}`);
    }
    return { holds: history.filter(({ kind }) => kind === 'granted').length, violations };
  }

  /** Resolves when each process has been granted so many locks from now on. */
  async granted(count: number): Promise<void> {
    const start = now();
    await until(() => {
      const recent = this.#grantsAfter(start);
      return this.#clients.every(({ name }) => recent.filter(({ process }) => process === name).length >= count);
    });
  }

  /** Reads only what is new: the proxies are in this process, and must not stand still. */
  #grantsAfter(start: number): readonly Grant[] {
    for (const client of this.#clients) {
      const from = this.#read.get(client) ?? 0;
      const file = openSync(client.file, 'r');
      const bytes = Buffer.alloc(fstatSync(file).size - from);
      readSync(file, bytes, 0, bytes.length, from);
      closeSync(file);
      const lines = bytes.subarray(0, bytes.lastIndexOf('\n') + 1);
      this.#read.set(client, from + lines.length);
      for (const line of lines.toString().split('\n')) {
        if (line.includes('"kind":"granted"')) this.#grants.push(JSON.parse(line) as Grant);
      }
    }
    return this.#grants.filter(({ at }) => at > start);
  }

  async stop(): Promise<void> {
    await this.#crew.stop();
    for (const half of this.#halves) await half.stop();
    await this.pair.stop();
  }
}

/** The clock of the histories. */
function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

function report(
  name: string,
  { times }: Failovers,
  { holds, violations }: Awaited<ReturnType<Failovers['end']>>,
): void {
  const rows = faults.map((fault) => {
    const own = times.filter((each) => each.fault === fault);
    const most = (of: 'sinceFaultMs' | 'sincePromotionMs') => Math.round(Math.max(...own.map((each) => each[of])));
    return own.length === 0
      ? []
      : { fault, times: own.length, sinceFaultMs: most('sinceFaultMs'), sincePromotionMs: most('sincePromotionMs') };
  });
  process.stdout.write(
    `failover: ${JSON.stringify({ name, holds, violations: violations.length, rows: rows.flat() })}\n`,
  );
}

describe('A failover of PostgreSQL', () => {
  let failovers: Failovers | undefined;
  afterEach(async () => {
    await failovers?.stop();
    failovers = undefined;
  }, 60_000);
  const rounds = isLong ? 6 : 1;

  it(
    '[failover-01] With a synchronous standby, a key has one owner, its fence rises and no count is lost, whatever happens to the primary',
    async () => {
      failovers = await Failovers.start(true);
      await failovers.begin();
      for (let round = 0; round < rounds; round++) for (const fault of faults) await failovers.failOver(fault);
      const outcome = await failovers.end();
      report('synchronous', failovers, outcome);
      expect(outcome.violations).toEqual([]);
      expect(outcome.holds).toBeGreaterThan(isLong ? 5_000 : 200);
    },
    isLong ? 900_000 : 180_000,
  );

  it(
    '[failover-02] With an asynchronous standby, two owners hold a key after a primary that is cut off, and counts are lost',
    async () => {
      failovers = await Failovers.start(false);
      await failovers.begin();
      for (let round = 0; round < rounds; round++) await failovers.failOver('cut off');
      const outcome = await failovers.end();
      report('asynchronous', failovers, outcome);
      const rules = new Set(outcome.violations.map((violation) => violation.split(':')[0]));
      // In a few failovers, chance may spare one of both.
      expect(rules.size).toBeGreaterThan(isLong ? 1 : 0);
    },
    isLong ? 300_000 : 120_000,
  );
});
