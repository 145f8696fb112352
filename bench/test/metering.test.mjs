import assert from 'node:assert/strict';
import { test } from 'node:test';
import { metered } from '../lib/meter.mjs';
import { timeInCommandsUs } from '../servers/command-time.mjs';

const stats = (evalsha, get, info) => `# Commandstats\r
cmdstat_evalsha:calls=10,usec=${evalsha},usec_per_call=1.00,rejected_calls=0,failed_calls=0\r
cmdstat_get:calls=10,usec=${get},usec_per_call=1.00,rejected_calls=0,failed_calls=0\r
cmdstat_script|load:calls=1,usec=5,usec_per_call=5.00,rejected_calls=0,failed_calls=0\r
cmdstat_info:calls=9,usec=${info},usec_per_call=1.00,rejected_calls=0,failed_calls=0\r
`;

test('The time of a command inside a script is counted once, and the looks of the benchmark are not counted', () => {
  const [before, after] = [stats(100, 40, 1_000), stats(1_100, 440, 9_000)];
  const shares = (get) => new Map(Object.entries({ evalsha: 1, get }));
  assert.equal(timeInCommandsUs(before, after, shares(0)), 1_000);
  assert.equal(timeInCommandsUs(before, after, shares(0.25)), 1_100);
});

test('A command that ran for the first time is counted from zero', () => {
  assert.equal(timeInCommandsUs('# Commandstats\r\n', stats(70, 30, 1), new Map([['evalsha', 1]])), 70);
});

test('What the workers and the server used is given for each thing that was done', async () => {
  const worker = (steps) => ({ call: async () => steps.shift() });
  const server = {
    usedBy: async (_name, work) => ({ result: await work(), serverUs: 50, commandsUs: 20 }),
  };
  const workers = [worker([100, 300]), worker([1_000, 1_200])];
  const figures = await metered({ workers, server }, async () => ({ count: 10, p50Us: 3 }));
  const { wallMs, ...others } = figures;
  assert.deepEqual(others, { count: 10, p50Us: 3, clientUs: 40, serverUs: 5, commandsUs: 2 });
  assert.ok(wallMs >= 0);
});
