import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Redis } from 'ioredis';
import { readAcquire, readGrant, readRelease, readRenew } from '../../../src/stores/redis/replies.ts';
import { acquire, forceRelease, release, renew } from '../../../src/stores/redis/scripts.generated.ts';
import type { RedisScript } from '../../../src/stores/redis/scripts.ts';
import { isLong, printSeed, seed, seeded } from '../../fault/seed.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';
import { setScriptTime, timed } from '../../support/redis/script-time.ts';
import { until } from '../../support/until.ts';

watchLeaks();
printSeed('redis-quick-paths');

const scripts = { acquire, forceRelease, release, renew };

/** Scripts whose time is set by the test, with and without the paths on which most calls end early. */
const kinds = ['quick', 'general'] as const;
type Kind = (typeof kinds)[number];

const prefix: Readonly<Record<Kind, string>> = { quick: 'quick:', general: 'general:' };
const leaseMs = 30_000;
const livenessMs = 5_000;
const plays = isLong ? 1_000 : 16;

/** Seven readers, of whom four have left before their releases were answered. The record has no room for another release. */
const longReaders = [
  ...[1, 2, 3, 4, 5, 6, 7].map((owner) => `r${owner}LONG e60000`),
  ...[1, 2, 3, 4].map((owner) => `-${owner}LONG f0 t400`),
];

interface Step {
  readonly name: keyof typeof scripts;
  readonly names: string;
  /** Up to the channels. */
  readonly terms: string;
  readonly extra: readonly string[];
}

interface State {
  /** The last fence and the flags. */
  readonly head: string;
  readonly lines: readonly string[];
  readonly queue: readonly string[];
}

/** One lock, in both kinds: the same steps must lead to the same. */
class Twins {
  lastReply: unknown;
  readonly #client: Redis;
  readonly #key: string;

  constructor(client: Redis, key: string) {
    this.#client = client;
    this.#key = key;
  }

  keys(kind: Kind): Readonly<Record<'lock' | 'queue', string>> {
    const name = `${prefix[kind]}{${this.#key}}`;
    return { lock: `${name}:lock`, queue: `${name}:queue` };
  }

  async take(kind: Kind, { name, names, terms, extra }: Step): Promise<unknown> {
    const { lock, queue } = this.keys(kind);
    const args = [names, `${terms} ${prefix[kind]}`, ...extra];
    const reply = await run(this.#client, timedScript(name, kind), [lock, queue], args);
    if (name === 'renew') return readRenew(reply);
    if (name === 'release') return readRelease(reply);
    if (name === 'forceRelease') return Number(reply);
    if (!Array.isArray(reply)) return readGrant(holdIdOf(names), Number(reply), Number(terms.slice(2, 14)));
    return readAcquire(holdIdOf(names), reply);
  }

  /** Takes a step in both kinds, expects the same of both, and returns what they kept. */
  async same(step: Step): Promise<State> {
    const [quick, general] = await Promise.all(kinds.map((kind) => this.take(kind, step)));
    this.lastReply = quick;
    expectSame(step, quick, general);
    const [ours, theirs] = await Promise.all(kinds.map((kind) => this.state(kind)));
    expectSame(step, ours, theirs);
    return ours as State;
  }

  /** What is kept of the lock, written in one way. */
  async state(kind: Kind): Promise<State> {
    const keys = this.keys(kind);
    const [text, queue] = await Promise.all([
      this.#client.get(keys.lock),
      this.#client.zrange(keys.queue, '0', '-1', 'WITHSCORES'),
    ]);
    const [head = '', ...lines] = (text ?? '').split('\n');
    const ends = (end: string): string => String(Number(fenceOf(head)?.slice(0, 13)) + Number(end));
    const plain = lines.filter((line) => !/^[?!]/.test(line));
    return { head, lines: plain.map((line) => line.replace(/(?<=^\w)\+\d+/, ends)), queue };
  }

  /** Whether queues are kept for what they say, and records for an hour longer than all that counts; but for what a play takes. */
  async areKept({ lines, queue }: State, nowMs: number): Promise<boolean> {
    const leases = lines.map((line) => Number(/^\w(\d{13})/.exec(line)?.[1] ?? 0));
    const others = queue.map((member, i) => {
      if (member.startsWith(':h')) return Number(queue[i + 1]) % 1e13;
      return member.startsWith(':g') ? Number(queue[i + 1]) / 1_000 : 0;
    });
    const isKept = async (key: string, untilMs: number): Promise<boolean> => {
      const ms = await this.#client.pttl(key);
      return ms === -2 || ms >= untilMs - nowMs - 60_000;
    };
    const lastMs = Math.max(nowMs, ...leases, ...others) + 3_600_000;
    const kept = kinds.map(async (kind) => {
      const keys = this.keys(kind);
      return (await isKept(keys.lock, lastMs)) && (await isKept(keys.queue, Math.max(nowMs, ...others)));
    });
    return (await Promise.all(kept)).every(Boolean);
  }
}

/** The first look costs a fraction of jest's, which is asked when there is a difference to show. */
function expectSame(step: Step, quick: unknown, general: unknown): void {
  if (!isDeepStrictEqual(quick, general)) expect({ step, quick }).toEqual({ step, quick: general });
}

interface Script {
  readonly source: string;
  readonly sha1: string;
}

const timedScripts = new Map<string, Script>();

function timedScript(name: Step['name'], kind: Kind): Script {
  const known = timedScripts.get(`${name} ${kind}`);
  if (known !== undefined) return known;
  const source = sourceOf(scripts[name], kind);
  const script = { source, sha1: createHash('sha1').update(source).digest('hex') };
  timedScripts.set(`${name} ${kind}`, script);
  return script;
}

/** Sends the source once: it is long. */
async function run(
  client: Redis,
  { source, sha1 }: Script,
  keys: readonly string[],
  args: readonly string[],
): Promise<unknown> {
  try {
    return await client.evalsha(sha1, keys.length, ...keys, ...args);
  } catch (error) {
    if (!String(error).includes('NOSCRIPT')) throw error;
    return client.eval(source, keys.length, ...keys, ...args);
  }
}

/** With the time from a key, and on request without what is between the check of the format and the general part. */
function sourceOf({ source }: RedisScript, kind: Kind): string {
  const [time = '', text = '', ...rest] = source.split('\n');
  const general = rest.indexOf('local record, queue = KEYS[1], KEYS[2]');
  if (time !== "local time = redis.call('TIME')") throw new Error('The scripts begin in another way');
  // A renewal has one path for all.
  const afterCheck = rest.indexOf('end') + 1;
  const body = kind === 'quick' || general < 0 ? rest : [...rest.slice(0, afterCheck), ...rest.slice(general)];
  return timed([time, text, ...body].join('\n'));
}

/** The last fence of a record, behind the number of its permits; undefined without a record. */
function fenceOf(head: string): string | undefined {
  return /\d{16}/.exec(head)?.[0];
}

/** A number below the one that is given, at random. */
type Roll = (sides: number) => number;

function rollOf(part: number): Roll {
  const random = seeded(seed + part);
  return (sides) => Math.floor(random() * sides);
}

function holdIdOf(names: string): string {
  return names.split(' ')[2] ?? '';
}

describe('The quick paths of the scripts', () => {
  const redis = useRedis();
  let subscriber: Redis;

  beforeEach(() => {
    subscriber = redis.connect();
  });

  afterEach(() => subscriber.disconnect());

  it.each([
    [1, 1, 'mostly one by one'],
    [2, 1, 'mostly one by one'],
    [3, 1, 'mostly one by one'],
    [7, 4, 'mostly one by one'],
    [8, 7, 'mostly one by one'],
    [9, 7, 'at once'],
    [10, 8, 'at once'],
    [11, 8, 'at once, with permits'],
  ] as const)(
    'The quick paths reply, store and publish the same as the general ones, order %i, %i of 8 to read, released %s',
    async (part, readers, released) => {
      const client = redis.client;
      const roll = rollOf(part);
      const told: Record<Kind, string[]> = { quick: [], general: [] };
      subscriber.on('message', (channel: string, message: string) => {
        const kind = channel.startsWith(prefix.quick) ? 'quick' : 'general';
        told[kind].push(`${channel.slice(prefix[kind].length)}: ${message}`);
      });
      // The third one is a process that nobody hears from.
      for (const kind of kinds) {
        await subscriber.subscribe(...['pa', 'pb', 'freed', 'end'].map((name) => `${prefix[kind]}${name}`));
      }

      const clock = new ScriptClock(client, roll);
      for (let play = 0; play < plays; play++) {
        const twins = new Twins(client, `lock-${part}-${play}`);
        const wishes: Wish[] = [];
        let fence = '1';
        let ends: number[] = [];
        for (let i = 0; i < 60; i++) {
          const nowMs = await clock.goOn(roll(6) === 0 ? ends[roll(4)] : undefined);
          const step = nextStep(roll, wishes, fence, readers, released);
          const ours = await twins.same(step);
          ends = endsIn(ours);
          expect(await twins.areKept(ours, nowMs)).toBe(true);
          fence = fenceOf(ours.head) ?? fence;
        }
      }

      for (const kind of kinds) await client.publish(`${prefix[kind]}end`, 'end');
      await until(() => kinds.every((kind) => told[kind].at(-1) === 'end: end'));
      expect(told.quick).toEqual(told.general);
      expect(told.quick.length).toBeGreaterThan(readers === 8 ? 0 : readers > 4 ? 5 : 25);
    },
  );

  it.each([
    ['of one that was released, on a free key', ['w10', '-10', 'w10'], 'cancelled'],
    ['on a key whose lease ends exactly now', ['w10 e500', 'at the end', 'w20'], 'granted'],
    ['on a free key, of one that is remembered until exactly now', ['w10', '-10 t400', 'at the end', 'w10'], 'granted'],
    ['on a key that several read', ['r10', 'r20', '-10', 'w30'], 'queued'],
    ['to write before who is passed over', ['w10', 'c20', 'b30', '-10', 'c40', '-30'], 'released'],
    ['where two wait, and two may', ['w10', 'w20', 'w30', 'w40 m2'], 'full'],
    ['where nobody may wait', ['w10', 'w20 m0'], 'full'],
    ['to write, which is a try', ['w10', 'w20 f0', 'w30', 'w40 f0'], 'refused'],
    ['beside a release that the queue remembers', ['w10', 'w20', 'w30', '-20 f2', 'b40'], 'queued'],
    ['of one whose release the queue remembers', ['w10', 'w20', 'w30', '-20 f2', 'w20'], 'cancelled'],
    ['to read beside a reader whose lease ends exactly now', ['r10', 'r20 e500', 'at the end', 'r30'], 'granted'],
    ['to read, of one released before it came', ['r10', 'r20', '-30 f2', 'r30'], 'cancelled'],
  ])('The quick paths give the same reply to an acquire %s', async (_, plan, last) => {
    expect(await play(plan)).toMatchObject({ status: last });
  });

  it.each([
    [
      'of a process that has several to be remembered, beside another',
      ['w10', '-10 f0', 'w20', '-20 f0', 'b30', '-30', 'w40', '-40'],
      'released',
    ],
    ['of a hold whose lease is over, where another waits', ['w10 e500', 'w20', 'later', '-10'], 'expired'],
    ['where who waits alone has not polled for too long', ['w10', 'w20 l1000', 'later', 'later', '-10'], 'released'],
    [
      'where the first who waits let a claim lapse',
      ['w10', 'b20 l20000', 'b30 l20000', '-10', 'much later', 'w40', '-40'],
      'released',
    ],
    ['of the only hold, whose lease ends exactly now', ['w10 e500', 'at the end', '-10'], 'expired'],
    [
      'of the only hold, whose lease ends exactly now while another waits',
      ['w10 e500', 'w20', 'at the end', '-10'],
      'expired',
    ],
    ['of the first reader, while others read on', ['r10', 'r20', 'w40', '-10', '-20'], 'released'],
    ['of a reader beside one whose lease ends exactly now', ['r10', 'r20 e500', 'at the end', '-10'], 'released'],
    ['of a reader whose lease ends exactly now', ['r10', 'r20 e500', 'at the end', '-20'], 'expired'],
    ['of a reader whose release finds no room in the record', [...longReaders, '-6LONG f0'], 'released'],
    ['of a reader that forgets those that left no room', [...longReaders, '-6LONG'], 'released'],
    [
      'of a reader that is remembered for an hour, and finds no room',
      [...longReaders, '-6LONG f0 t3500000'],
      'released',
    ],
    [
      'of the only hold, where others left no room',
      [...[1, 2, 3, 4].flatMap((owner) => [`w${owner}LONG`, `-${owner}LONG f0`]), 'b50', '-50'],
      'released',
    ],
    ['of a reader that finds room again', [...longReaders, 'later', 'r80', '-6LONG f0'], 'released'],
    ['of the last reader, while nobody waits', ['r10', 'r20', '-10', '-20', 'w30', '-30'], 'released'],
    [
      'of the only hold while the process that waits is live until exactly now',
      ['w10', 'w20 l400', 'at the end', '-10'],
      'released',
    ],
    ['beside one that the queue remembers', ['w10', 'w20', 'w30', 'w40', '-20 f2', '-10'], 'released'],
    [
      'beside one that the queue remembers until exactly now',
      ['w10', 'w20', 'w30', 'w40', '-20 f2 t400', 'at the end', '-10'],
      'released',
    ],
    [
      'beside one that the queue remembers for longer than a claim lasts',
      ['w10 e500', 'w20', 'w30', 'w40', '-20 f2 t7000000', '-10'],
      'released',
    ],
    ['of the last but one beside one that the queue remembers', ['w10', 'w20', 'w30', '-20 f2', '-10'], 'released'],
    ['of a writer, to be remembered for more than an hour', ['w10', '-10 t4000000'], 'released'],
  ])('The quick paths give the same reply to a release %s', async (_, plan, last) => {
    expect(await play(plan)).toMatchObject({ status: last });
  });

  it.each([
    ['an acquire, whose queue remembers a release', ['w10', 'w20', 'w30', '-20 f2'], 'w40', 1],
    // A call that leaves the quick path has made its commands, too: it has more than the general path.
    ['an acquire, whose queue has room for one more', ['w10', 'w20', 'w30'], 'w40 m3', 0],
    ['a release, whose queue remembers another', ['w10', 'w20', 'w30', 'w40', '-20 f2'], '-10', 1],
    ['an acquire to read beside one reader', ['r10'], 'r20', 1],
    ['an acquire to read beside two', ['r10', 'r20'], 'r30', 1],
    ['an acquire to read, whose queue remembers a release', ['r10', 'r20', '-30 f2'], 'r40', 1],
    ['a release of the reader that came first', ['r10', 'r20'], '-10', 1],
    ['a release of one reader of several', ['r10', 'r20', 'r30'], '-20', 1],
    ['an acquire of a key whose readers have gone', ['r10', 'r20', '-10', '-20'], 'w30', 0],
    ['a release of the last reader', ['r10', 'r20', '-10'], '-20', 1],
    ['a release of a reader, whose queue remembers another', ['r10', 'r20', 'r30', '-20 f2'], '-30', 1],
    ['a release of a reader before another was answered', ['r10', 'r20', 'r30', '-20'], '-30 f0', 1],
  ])('The quick paths serve a key in demand: %s', async (_, plan, last, fewer) => {
    const { client } = redis;
    const costOf = async (work: () => Promise<unknown>): Promise<number> => {
      await client.config('RESETSTAT');
      await work();
      const calls = (await client.info('commandstats')).matchAll(/:calls=(\d+)/g);
      return Array.from(calls, ([, count]) => Number(count)).reduce((sum, count) => sum + count);
    };
    const twins = new Twins(client, 'planned');
    for (const kind of kinds) await subscriber.subscribe(`${prefix[kind]}pa`);
    await new ScriptClock(client, () => 1).goOn();
    const wishes = new Map<string, Wish>();
    for (const planned of plan) await twins.same(stepOf(planned, wishes, '1'));
    const step = stepOf(last, wishes, '1');
    const general = await costOf(() => twins.take('general', step));
    expect(general - (await costOf(() => twins.take('quick', step)))).toBeGreaterThanOrEqual(fewer);
  });

  /** Takes the steps of a plan in both kinds, and returns the last reply. */
  async function play(plan: readonly string[]): Promise<unknown> {
    let jump = 0;
    const clock = new ScriptClock(redis.client, (sides) => (sides === 3 && jump > 0 ? 0 : sides === 5 ? jump : 1));
    const twins = new Twins(redis.client, 'planned');
    for (const kind of kinds) await subscriber.subscribe(`${prefix[kind]}pa`, `${prefix[kind]}pb`);
    const wishes = new Map<string, Wish>();
    let fence = '1';
    let ends: number[] = [];
    let isAtEnd = false;
    let nowMs = 0;
    for (const planned of plan) {
      jump = { later: 2, 'much later': 3 }[planned] ?? 0;
      const endUs = planned === 'at the end' ? ends[0] : undefined;
      if (!isAtEnd) nowMs = await clock.goOn(endUs);
      isAtEnd = endUs !== undefined;
      if (isAtEnd || jump > 0) continue;
      const state = await twins.same(stepOf(planned, wishes, fence));
      expect(await twins.areKept(state, nowMs)).toBe(true);
      fence = state.head.slice(0, 16);
      ends = endsIn(state);
    }
    return twins.lastReply;
  }

  it.each([4, 5, 6])(
    'The quick paths name a waiter that waits alone, and no other, even if queues or records get lost, order %i',
    async (part) => {
      const client = redis.client;
      const roll = rollOf(part);
      const clock = new ScriptClock(client, roll);
      let named = 0;
      for (let play = 0; play < 2 * plays; play++) {
        const twins = new Twins(client, `lock-${part}-${play}`);
        const { lock, queue } = twins.keys('quick');
        const wishes: Wish[] = [];
        const released = new Set<string>();
        let fence = '1';
        let isNamed = false;
        let isLost = false;
        for (let i = 0; i < 60; i++) {
          await clock.goOn();
          if (isNamed && roll(4) === 0) await client.del(queue);
          else if (roll(30) === 0) isLost = (await client.del(lock)) === 1 || isLost;
          const step = nextStep(roll, wishes, fence);
          await twins.take('quick', step);
          if (step.name === 'release') released.add(step.names);
          if (step.name === 'acquire') released.delete(step.names);
          const text = (await client.get(lock)) ?? '';
          const members = await client.zrange(queue, '0', '-1');
          const alone = /\n\?((\S+) (\S+) \S+ \S \d+ \S+) \d+/.exec(text);
          isNamed = alone !== null;
          if (alone !== null) {
            named += 1;
            const [, waiter, process, owner] = alone;
            const whole = [`:o${owner}`, `:p${process}`, waiter];
            expect([[], whole.sort()]).toContainEqual(members.sort());
          }
          const holders = Array.from(text.matchAll(/\n\w\S+ (\S+ \S+ \S+)/g), ([, names]) => names);
          // Without its record, a lock knows of no release, and who was queued still is.
          const stale = isLost ? [] : holders.filter((names = '') => released.has(names));
          expect({ i, step, stale }).toEqual({ i, step, stale: [] });
          fence = text.slice(0, 16) || fence;
        }
      }
      expect(named).toBeGreaterThan(30);
    },
  );
});

/** The time that the scripts see. */
class ScriptClock {
  readonly #client: Redis;
  readonly #roll: Roll;
  #nowUs = 1_700_000_000_000_000;

  constructor(client: Redis, roll: Roll) {
    this.#client = client;
    this.#roll = roll;
  }

  /**
   * Mostly by little; but leases, claims and liveness end, and the clock may be set back. To `endUs` if that is to come, so
   * that something ends exactly now. Returns the time in ms.
   */
  async goOn(endUs = 0): Promise<number> {
    const roll = this.#roll;
    const stepUs = roll(3) > 0 ? roll(1_000) : ([0, -2_000, 700_000, 6_000_000, 31_000_000][roll(5)] ?? 0);
    this.#nowUs = endUs > this.#nowUs ? endUs : this.#nowUs + stepUs;
    await setScriptTime(this.#client, this.#nowUs);
    return this.#nowUs / 1_000;
  }
}

/** The moments at which something that a lock keeps is over, in us, the earliest first. */
function endsIn({ lines, queue }: State): number[] {
  const leases = lines.map((line) => Number(/^[a-z](\d{13}) /i.exec(line)?.[1]) * 1_000);
  const releases = lines.map((line) => {
    const [, seconds, us, ms] = / \w(\d+)\.(\d+) (\d+)$/.exec(line) ?? [];
    return Number(seconds) * 1e6 + Number(us) + Number(ms) * 1_000;
  });
  const marks = queue.map((member, i) => {
    const score = Number(queue[i + 1]);
    if (member.startsWith(':p')) return Math.floor(score) * 1_000;
    if (member.startsWith(':h')) return Math.floor(score % 1e13) * 1_000;
    return member.startsWith(':g') ? score : Number.NaN;
  });
  return [...leases, ...releases, ...marks].filter(Number.isFinite).sort((a, b) => a - b);
}

/** A hold as its calls name it: its wish is always the same. */
interface Wish {
  readonly names: string;
  readonly wants: string;
}

/**
 * A step as a plan has it: the process and its wish, or the sign of a release or a renewal, then the hold, whose first digit
 * is its owner, and which LONG makes long, and what is not as usual: e: lease, f: flag, l: liveness, m: most waiters, p: priority,
 * t: tombstone.
 */
function stepOf(planned: string, wishes: Map<string, Wish>, fence: string): Step {
  const [, letter = '', hold = '', more = ''] = /^(\D)(\d+)(.*)$/.exec(planned.replace('LONG', '0'.repeat(400))) ?? [];
  const of = (what: string, usual: number): number => Number(more.split(what)[1]?.split(' ')[0] ?? usual);
  const process = { b: 'pb', c: 'pc', d: 'pc' }[letter] ?? 'pa';
  const wish = {
    names: `${process} o${hold[0]} h${hold}`,
    wants: `${'rd'.includes(letter) ? 'r' : 'w'} 3000 ${of('p', 0)}`,
  };
  const { names, wants } = wishes.get(hold) ?? wish;
  if (letter !== '-') wishes.set(hold, { names, wants });
  if (letter === '-') {
    return { name: 'release', names, terms: `${of('t', leaseMs)} ${of('f', 1)} ${wants} 0 0`, extra: [] };
  }
  if (letter === '+') return { name: 'renew', names, terms: `${of('e', leaseMs)} 0 ${wants} 0 0`, extra: [fence] };
  const lease = String(of('e', leaseMs)).padStart(12, '0');
  const terms = `${wants[0]}+${lease} ${of('f', 1)} ${wants} ${of('m', 1_000)} ${of('l', livenessMs)}`;
  return { name: 'acquire', names, terms, extra: [] };
}

/**
 * Mostly what happens to a lock in a service: few owners, of two processes and a dead one, that come and go. Releases `atOnce`
 * don't wait for each other, and are long: a record has no room for all.
 */
function nextStep(roll: Roll, wishes: Wish[], fence: string, readers = 1, released = 'mostly one by one'): Step {
  const atOnce = released.startsWith('at once');
  const dice = roll(20);
  const known = wishes[wishes.length - 1 - roll(4)];
  if (dice < 9 || known === undefined) {
    const wish = roll(5) === 0 && known !== undefined ? known : newWish(roll, wishes, readers, atOnce ? 400 : 0);
    const lease = String([leaseMs, leaseMs, leaseMs, leaseMs, 2_000, 1_200_000][roll(6)]).padStart(12, '0');
    const most = roll(8) === 0 ? roll(3) : 1_000;
    const least = String(Number(fence) + roll(2) * 10_000_000).padStart(16, '0');
    const permits = released.endsWith('permits') && roll(12) > 0 ? '+3' : '';
    const terms = `${wish.wants[0]}+${lease}${permits} ${roll(6) === 0 ? 0 : 1} ${wish.wants} ${most} ${livenessMs}`;
    return { name: 'acquire', names: wish.names, terms, extra: roll(12) === 0 ? [least] : [] };
  }
  const { names, wants } = known;
  if (dice < 17) {
    const rememberMs = [leaseMs, leaseMs, leaseMs, 0, 4_000_000][roll(5)];
    const flags = atOnce ? [0, 0, 0, 0, 1, 2] : [1, 1, 1, 1, 0, 2];
    const terms = `${rememberMs} ${flags[roll(6)]} ${wants} 0 0`;
    return { name: 'release', names, terms, extra: roll(6) === 0 ? ['the lock'] : [] };
  }
  if (dice < 19) return { name: 'renew', names, terms: `${leaseMs} 0 ${wants} 0 0`, extra: [String(Number(fence))] };
  return { name: 'forceRelease', names: '- - -', terms: `${Number(fence)} 0 w 0 0 0 0`, extra: [] };
}

function newWish(roll: Roll, wishes: Wish[], readers: number, width: number): Wish {
  const process = roll(7) === 0 ? 'pc' : `p${'ab'[roll(2)]}`;
  const wants = `${roll(8) < readers ? 'r' : 'w'} 3000 ${roll(15) === 0 ? 2 : 0}`;
  const wish = { names: `${process} o${roll(5)} h${String(wishes.length).padStart(width, '0')}`, wants };
  wishes.push(wish);
  return wish;
}
