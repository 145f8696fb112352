import { Agent, get } from 'node:http';
import { RedisStore } from 'reenlock/redis';
import { gate } from '../support/gate.ts';
import { express5 } from '../support/http/express-app.ts';
import { ServerStage } from '../support/http/server-stage.ts';
import { useRedis } from '../support/redis/redis-stage.ts';
import { until } from '../support/until.ts';

interface Answer {
  readonly status: number | undefined;
  readonly retryAfter: string | undefined;
}

describe('5,000 requests for one key', () => {
  const redis = useRedis();
  const connections = new Agent({ keepAlive: true, maxSockets: 300 });
  afterEach(async () => {
    connections.destroy();
    await ServerStage.endAll();
  });

  const maxWaitersPerKey = 200;

  it('As many requests as the limit allows wait and are served, one by one; the rest get 503 with Retry-After, and nothing is left', async () => {
    const work = gate();
    let inside = 0;
    let crowd = 0;
    const stage = await ServerStage.start(
      express5,
      { store: new RedisStore({ client: redis.client }), maxWaitersPerKey },
      (app) => {
        app.route('/order', express5.lockOn('k', { waitMs: 60_000 }), async (call) => {
          inside += 1;
          crowd = Math.max(crowd, inside);
          await work;
          inside -= 1;
          call.send('done');
        });
        app.route('/health', (call) => call.send('well'));
      },
    );
    const answers: Answer[] = [];
    const all = Array.from({ length: 5_000 }, async () => {
      answers.push(await ask(stage.port));
    });
    // One holds, and as many wait as may; nobody of these is answered yet.
    await until(() => answers.length === 5_000 - 1 - maxWaitersPerKey);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]));
    expect(answers.filter(({ retryAfter }) => !(Number(retryAfter) >= 1))).toEqual([]);
    expect((await stage.get('/health')).status).toBe(200);
    expect(await stage.waiters('k')).toHaveLength(maxWaitersPerKey);
    work.open();
    await Promise.all(all);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1 + maxWaitersPerKey);
    expect(crowd).toBe(1);
    await stage.free('k');
    // A release whose acquire was answered late is remembered for a while; nothing else is there.
    const tombstones = 'reenlock:{k}:tombstones';
    expect((await redis.client.keys('*')).filter((name) => name !== tombstones)).toEqual(['reenlock:{k}:lock']);
  });

  function ask(port: number): Promise<Answer> {
    return new Promise((resolve, reject) => {
      get({ port, host: '127.0.0.1', path: '/order', agent: connections }, (answer) => {
        answer.resume().once('end', () => {
          resolve({ status: answer.statusCode, retryAfter: answer.headers['retry-after'] });
        });
      }).once('error', reject);
    });
  }
});
