import Redis from 'ioredis';
import type { Doing, Moment } from '../../examples/demo/moments.ts';
import { drawLanes } from '../../examples/demo/timeline.ts';
import { runScript, startScript, tsx } from '../support/processes/processes.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { until } from '../support/until.ts';
import { exampleFile } from './example.ts';

const demo = exampleFile('demo/demo.ts');

// Slow motion: requests that are sent at once also meet on a busy machine.
// As `npm start` does.
const run = (redisUrl: string) => runScript(demo, { execArgv: tsx, env: { REDIS_URL: redisUrl, STEP_MS: '100' } });

describe('demo.ts', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  it('The demo shows in memory the waits, holds and re-entries, and the result with the lock and without it', async () => {
    const { code, stdout, stderr } = await run('');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('WITH THE LOCK, in memory: one server process');
    expectLesson(stdout);
  });

  it('shows the same on Redis, over two server processes', async () => {
    const { code, stdout, stderr } = await run(redis.url);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('WITH THE LOCK, in Redis: two server processes, @1 and @2');
    expect(lanes(stdout).map(({ server }) => server)).toEqual(expect.arrayContaining(['@1', '@2']));
    expectLesson(stdout);
  });

  it('then shows the board of locks that move, and prints its address', async () => {
    const script = startScript(demo, { execArgv: tsx, env: { REDIS_URL: '', PORT: '0', BOARD: 'yes' } });
    let url = '';
    for await (const line of script.lines()) {
      url = /http:\S+\/locks\//.exec(line)?.[0] ?? '';
      if (url !== '') break;
    }
    expect(await (await fetch(url)).text()).toContain('<title>Locks</title>');
    const stream = await fetch(`${url}stream`);
    let text = '';
    for await (const chunk of stream.body as AsyncIterable<Uint8Array>) {
      text += Buffer.from(chunk).toString();
      if (/"key":"order:4\d".*"holder"/.test(text)) break;
    }
    expect(await script.stop()).toMatchObject({ code: 0, stderr: '' });
  });

  it('says so, and fails, when its Redis goes away, and when none answers', async () => {
    const started = run(redis.url);
    const client = new Redis(redis.url, { retryStrategy: () => null });
    // Requests are at work: their order's books are begun.
    await until(
      () => client.keys('reenlock-demo:*:locked'),
      ({ length }) => length > 0,
    );
    client.disconnect();
    await redis.kill();
    for (const { code, stderr } of [await started, await run(redis.url)]) {
      expect(code).toBe(1);
      expect(stderr).toContain('No Redis server answers at REDIS_URL');
      // And nothing of what it did to the requests.
      expect(stderr).not.toMatch(/^ +at /m);
    }
  });
});

describe('drawLanes', () => {
  it.each([60, 80, 120])('fits into a terminal of %d columns', (columns) => {
    const { columns: before } = process.stdout;
    process.stdout.columns = columns;
    try {
      const answer = { traceId: 'r1', order: '42', server: 1, status: 409 };
      const at = (doing: Doing, atMs: number): Moment => ({ variant: 'open', traceId: 'r1', doing, holds: 1, atMs });
      const moments = [at('wait', 0), at('hold', 40), at('orders', 60), at('leave', 100)];
      const rows = drawLanes([answer], moments, 100, true);
      expect(rows.at(-1)).toMatch(/^order 42 {2}r1 @1 \.+#+o+ {2}409 none left$/);
      // A space stands before each line.
      expect(Math.max(...rows.map((row) => 1 + row.length))).toBe(Math.min(columns, 94));
    } finally {
      process.stdout.columns = before;
    }
  });
});

/** What every run must show. */
function expectLesson(stdout: string): void {
  const lines = stdout.split('\n');
  expect(lines.filter((line) => line.length > 80)).toEqual([]);
  // Plain text where nobody is at a terminal.
  expect(stdout).not.toContain('\u001b');

  const [locked, open] = [lanes(stdout).slice(0, 6), lanes(stdout).slice(6)];
  expect(open).toHaveLength(6);
  // Two orders: one request of each finds it free, the others wait for it; without the lock nobody does.
  expect(locked.map(({ waits }) => waits)).toEqual([false, true, true, true, false, true]);
  expect(open.some(({ waits }) => waits)).toBe(false);
  expect(locked.map(({ steps }) => steps)).toEqual(['#oipo', '#oipo', '#oipo', '#oi', '#oipo', '#oipo']);
  expect(locked.map(({ status }) => status)).toEqual([201, 201, 201, 409, 201, 201]);
  expect(open.map(({ status }) => status)).toEqual(Array(6).fill(201));

  const results = lines.filter((line) => line.includes(' shipped, stock '));
  expect(results[0]).toBe(' order 42  3 of 3 shipped, stock 0, 15.00 charged  right');
  expect(results[1]).toBe(' order 43  2 of 3 shipped, stock 1, 10.00 charged  right');
  expect(results[2]).toMatch(/^ order 42 {2}4 of 3 shipped, .* WRONG: should be 0, 15\.00$/);
  expect(results[3]).toMatch(/^ order 43 {2}2 of 3 shipped, .* WRONG: should be 1, 10\.00$/);
  expect(stdout).toContain('6 grants; 5 re-entries by HTTP; 12 within a service, without a store call.');
}

interface Lane {
  readonly server: string | undefined;
  readonly waits: boolean;
  /** What the request did, in order, each once. */
  readonly steps: string;
  readonly status: number;
}

function lanes(stdout: string): Lane[] {
  const rows = stdout.matchAll(/^ (?:order \d+)? +r\d( @\d)? +(\.*)([#oip]+) +(\d{3})/gm);
  return [...rows].map(([, server, waits, steps, status]) => ({
    server: server?.trim(),
    waits: waits !== '',
    steps: steps!.replace(/(.)\1+/g, '$1'),
    status: Number(status),
  }));
}
