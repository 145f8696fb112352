import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { freePort } from '../support/processes/free-port.ts';
import { runScript, startScript } from '../support/processes/processes.ts';
import { useRedis } from '../support/redis/redis-stage.ts';
import { until } from '../support/until.ts';
import { Bank } from './bank.ts';
import { Example, exampleFile, stopExamples } from './example.ts';

const run = exampleFile('two-services/run.ts');

/** All processes but those that have ended, though nobody has asked how. */
async function processes(): Promise<{ pid: number; parent: number }[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=,stat=']);
  const rows = [...stdout.matchAll(/^ *(\d+) +(\d+) +([^Z]\S*)$/gm)];
  return rows.map(([, pid, parent]) => ({ pid: Number(pid), parent: Number(parent) }));
}

describe('two services on one Redis', () => {
  const redis = useRedis();
  let bank: Bank;
  let orders: Example;
  let payments: Example;

  beforeEach(async () => {
    bank = await Bank.open();
    const [ordersPort, paymentsPort] = [await freePort(), await freePort()];
    const env = {
      REDIS_URL: redis.server.url,
      BANK_URL: bank.url,
      ORDERS_URL: `http://127.0.0.1:${ordersPort}`,
      PAYMENTS_URL: `http://127.0.0.1:${paymentsPort}`,
      LEASE_MS: '6000',
      // Later than any test may take: a waiter that gets in did not wait for it.
      POLL_MS: '60000',
    };
    [orders, payments] = await Promise.all([
      Example.start('two-services/orders.ts', { ...env, PORT: String(ordersPort) }),
      Example.start('two-services/payments.ts', { ...env, PORT: String(paymentsPort) }),
    ]);
  });
  afterEach(() => stopExamples().finally(() => bank.close()));

  const post = (url: string, traceId: string) => fetch(url, { method: 'POST', headers: { 'X-Trace-Id': traceId } });
  const ship = (traceId: string) => post(orders.url('/orders/42/shipments'), traceId);
  const charge = (traceId: string) => post(payments.url('/orders/42/charges'), traceId);
  const inspect = () => redis.inspect('order:42');
  const state = (fits: (state: Awaited<ReturnType<typeof inspect>>) => boolean) => until(inspect, fits);
  /** When a grant was made, by the store's clock: a fence is its time in microseconds, unless two fall into one. */
  const grantedAtMs = (line: string) => Number(/fence (\d+)$/.exec(line)?.[1]) / 1_000;
  const nowMs = async () => (await inspect()).nowMs;

  it('the called service re-enters the order that its caller holds, and the call back from there does, too', async () => {
    bank.answerAll();
    const answer = await ship('trace');
    expect(answer.status).toBe(201);
    const { fence, charge: charged } = (await answer.json()) as { fence: number; charge: unknown };
    expect(fence).toBeGreaterThan(0);
    // One fence: the order did not change hands.
    expect(charged).toEqual({ fence, total: { cents: 500, fence } });
    await state(({ holds }) => holds.length === 0);
    const holds = `trace holds order:42, fence ${fence}`;
    expect(orders.lines.filter((line) => line === holds)).toHaveLength(2);
    expect(payments.lines.filter((line) => line === holds)).toHaveLength(1);
    expect([...orders.lines, ...payments.lines].filter((line) => line.includes('waits'))).toEqual([]);
  });

  it('an order whose id is no word in a path is asked for as it is written', async () => {
    bank.answerAll();
    const answer = await post(orders.url('/orders/..%2F43%3Fa/shipments'), 'trace');
    const holds = expect.stringMatching(/^trace holds order:\.\.\/43\?a, fence/);
    const { status } = answer;
    expect({ status, said: payments.lines }).toEqual({ status: 201, said: expect.arrayContaining([holds]) });
  });

  it('A charge whose total the order service refuses does not reach the bank', async () => {
    const refusing = createServer((_req, res) => res.writeHead(503).end('{}')).listen(0, '127.0.0.1');
    await once(refusing, 'listening');
    const ORDERS_URL = `http://127.0.0.1:${(refusing.address() as AddressInfo).port}`;
    const env = { REDIS_URL: redis.server.url, BANK_URL: bank.url, ORDERS_URL };
    try {
      const alone = await Example.start('two-services/payments.ts', env);
      bank.answerAll();
      expect((await post(alone.url('/orders/42/charges'), 'trace')).status).toBe(500);
    } finally {
      refusing.closeAllConnections();
      refusing.close();
    }
  });

  it('A stranger waits, in whichever service, until the caller has responded', async () => {
    const answer = ship('trace');
    await bank.asked();
    const strangers = [charge('stranger-1')];
    await payments.line(/^stranger-1 waits/);
    strangers.push(ship('stranger-2'));
    await orders.line(/^stranger-2 waits/);

    const { holds, waiters } = await inspect();
    expect(holds.map(({ owner }) => owner)).toEqual(['trace', expect.stringMatching(/^trace\/\w+$/)]);
    expect(waiters.map(({ owner }) => owner)).toEqual(['stranger-1', 'stranger-2']);
    const before = await nowMs();
    bank.answerAll();
    await bank.answer();
    expect((await answer).status).toBe(201);
    expect((await Promise.all(strangers)).map(({ status }) => status)).toEqual([201, 201]);

    const [first, second] = [await payments.line(/^stranger-1 holds/), await orders.line(/^stranger-2 holds/)];
    expect(grantedAtMs(first)).toBeGreaterThan(before);
    expect(grantedAtMs(second)).toBeGreaterThan(grantedAtMs(first));
    await state((found) => found.holds.length === 0);
  });
});

describe('two-services/run.ts', () => {
  it('starts its own Redis, and shows who holds, who re-enters and who waits', async () => {
    const { code, stdout, stderr } = await runScript(run, { env: { REDIS_URL: '' } });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const lines = stdout.split('\n');
    expect(lines.filter((line) => / r\d is answered 201/.test(line))).toHaveLength(2);
    expect(lines.filter((line) => /^orders {4}r\d waits for order:42$/.test(line))).toHaveLength(1);
    for (const trace of ['r1', 'r2']) {
      const fences = lines.map((line) => new RegExp(`${trace} holds order:42, fence (\\d+)`).exec(line)?.[1]);
      expect(new Set(fences.filter((fence) => fence !== undefined)).size).toBe(1);
    }
  });

  it('told to stop, ends with all that it has started', async () => {
    const script = startScript(run, { env: { REDIS_URL: '' } });
    for await (const line of script.lines()) if (/holds order:42/.test(line)) break;
    const started = (await processes()).filter(({ parent }) => parent === script.pid).map(({ pid }) => pid);
    expect(started.length).toBeGreaterThanOrEqual(3); // a Redis and two services
    script.kill('SIGTERM');
    expect((await script.exited).code).toBe(143);
    await until(processes, (left) => left.every(({ pid }) => !started.includes(pid)));
  });

  it('says so when no Redis answers, or none is at hand', async () => {
    const dead = await runScript(run, { env: { REDIS_URL: `redis://127.0.0.1:${await freePort()}` } });
    expect(dead.code).toBe(1);
    expect(dead.stderr).toContain('No Redis server answers at REDIS_URL: connect ECONNREFUSED');
    const none = await runScript(run, { env: { REDIS_URL: '', REDIS_SERVER: '/no/redis-server' } });
    expect(none.code).toBe(1);
    expect(none.stderr.trim()).toBe(
      'Two services need a Redis between them: set REDIS_URL, or put redis-server on the PATH',
    );
  });
});
