import { dirname, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { connect } from './lib/connect.mjs';
import { loadReenlock } from './lib/open-reenlock.mjs';
import { orderOf } from './lib/order.mjs';
import { median, pairedRatio } from './lib/stats.mjs';
import { processes, storeCalls } from './loads/store-calls.mjs';
import { startRedis } from './servers/redis.mjs';

// Compares what the calls of a `RedisStore` cost the server in this build and in that of another checkout. Both run on one
// server, in turns; the processor time of the client is not part of it. The folders need a build in `dist`.

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '15' }, only: { type: 'string', multiple: true } },
});
if (positionals.length !== 1) throw new Error('Expected one argument, the folder of another checkout that was built');
const folders = { now: dirname(import.meta.dirname), before: resolve(positionals[0]) };
const names = Object.keys(folders);

const server = await startRedis();
const builds = new Map();
try {
  for (const name of names) builds.set(name, await openStore(name));
  const rows = {};
  for (const load of Object.keys(storeCalls)) {
    if (options.only?.every((part) => !load.includes(part))) continue;
    rows[load] = rowOf(await measure(storeCalls[load]));
  }
  console.table(rows);
} finally {
  for (const { close } of builds.values()) await close();
  await server.stop();
}

/** Opens the store of a build, with keys and channels of its own, and a subscription for each process. */
async function openStore(name) {
  const { RedisStore } = await loadReenlock('redis', folders[name]);
  const client = await connect(server.port);
  const store = new RedisStore({ client, prefix: `${name}:` });
  const ends = await Promise.all(processes.map((process) => store.subscribe(process, () => {})));
  const close = () => Promise.all(ends.map((end) => end())).then(() => client.quit());
  return { store, close };
}

/** Runs a load once a round in each build, after a round to warm up. Returns server CPU by build, in µs, a round each. */
async function measure(load) {
  const runs = new Map();
  for (const [name, { store }] of builds) runs.set(name, await load(store));
  const figures = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = -1; round < Number(options.rounds); round += 1) {
    for (const name of orderOf(names, round + 1)) {
      const beforeUs = await server.cpuUs();
      const count = await runs.get(name)();
      if (round >= 0) figures[name].push(((await server.cpuUs()) - beforeUs) / count);
    }
  }
  return figures;
}

function rowOf({ now, before }) {
  const { value, low, high } = pairedRatio(now, before);
  return {
    'before, µs': median(before).toFixed(1),
    'now, µs': median(now).toFixed(1),
    'now / before': `${value.toFixed(2)} (${low.toFixed(2)}-${high.toFixed(2)})`,
  };
}
