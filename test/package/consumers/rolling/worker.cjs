// One process of a service during a rolling deploy: it locks until it is told to stop by SIGTERM, then reports.
// Arguments: the store, its address, and a folder in which a file stands for each hold.
const { closeSync, openSync, readFileSync, unlinkSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');
const { createLocks, lock, runInTrace } = require('reenlock');

const [store, address, folder] = process.argv.slice(2);
const keys = ['order:1', 'order:2'];
const lines = 4;
const report = { runs: 0, violations: [], errors: [] };
let isStopping = false;

const stores = {
  redis() {
    const { Redis } = require('ioredis');
    const { RedisStore } = require('reenlock/redis');
    const client = new Redis(address);
    return { store: new RedisStore({ client }), end: () => client.quit() };
  },
  async postgres() {
    const { Pool } = require('pg');
    const { PostgresStore } = require('reenlock/postgres');
    const pool = new Pool({ connectionString: address, max: 4 });
    const opened = new PostgresStore({ pool });
    await opened.migrate();
    return { store: opened, end: () => pool.end() };
  },
};

async function main() {
  const opened = await stores[store]();
  const locks = createLocks({ store: opened.store, waitMs: 30_000 });
  process.on('SIGTERM', () => {
    isStopping = true;
  });
  await Promise.all(keys.flatMap((key) => Array.from({ length: lines }, () => work(locks, key))));
  await locks.close();
  await opened.end();
  process.send(report);
  process.disconnect();
}

async function work(locks, key) {
  while (!isStopping) {
    try {
      await runInTrace(() => lock.run(key, (hold) => enter(key, hold.fence)), { locks });
      report.runs += 1;
      if (report.runs === 1) process.send('runs');
    } catch (error) {
      report.errors.push(`${error.code}: ${error.message}`);
      await sleep(50);
    }
  }
}

async function enter(key, fence) {
  const name = join(folder, key.replace(':', '-'));
  try {
    closeSync(openSync(`${name}.held`, 'wx')); // fails if it is there
  } catch {
    report.violations.push(`${key} is held twice`);
    return;
  }
  const last = Number(readFileSync(`${name}.fence`, 'utf8'));
  if (fence <= last) report.violations.push(`${key} has a fence that is not higher`);
  writeFileSync(`${name}.fence`, String(fence));
  await sleep(10);
  unlinkSync(`${name}.held`);
}

void main();
