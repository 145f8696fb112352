import { useRedis } from '../support/redis/redis-stage.ts';
import { until } from '../support/until.ts';
import { Example, stopExamples } from './example.ts';

const file = 'seat-reservation/server.ts';

interface Answer {
  readonly status: number;
  readonly body: { readonly token?: string; readonly code?: string };
}

async function send(example: Example, method: string, path: string, body: object = {}): Promise<Answer> {
  const response = await fetch(example.url(path), {
    method,
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : {} };
}

const reserve = (example: Example, seat: string) => send(example, 'POST', `/seats/${seat}/reservations`);
const pay = (example: Example, token: unknown) => send(example, 'POST', '/payments', { token });

describe('The seat reservation', () => {
  const redis = useRedis();
  afterEach(stopExamples);

  it('A seat that one process reserved is paid in another, by the one that has its token, once', async () => {
    const env = { REDIS_URL: redis.server.url };
    const [one, two] = await Promise.all([Example.start(file, env), Example.start(file, env)]);
    const reservation = await reserve(one, '12A');
    expect(reservation.status).toBe(201);
    expect((await reserve(two, '12A')).status).toBe(409);
    one.kill('SIGTERM');
    expect(await one.exited).toMatchObject({ code: 0, stderr: '' });
    const { token } = reservation.body;
    for (const forged of [undefined, `${token}0`, token?.replace(/.$/, (last) => (last === '0' ? '1' : '0'))])
      expect(await pay(two, forged)).toMatchObject({ status: 410, body: { code: 'ERR_LOCK_TOKEN' } });
    const payments = await Promise.all([pay(two, token), pay(two, token), pay(two, token)]);
    expect(payments.map(({ status }) => status).sort()).toEqual([201, 410, 410]);
    expect((await reserve(two, '12A')).status).toBe(409);
  });

  it('A reservation that is not paid lapses, and one that is cancelled ends at once', async () => {
    const example = await Example.start(file, { RESERVED_MS: '500' });
    const first = await reserve(example, '14C');
    const second = await until(
      () => reserve(example, '14C'),
      ({ status }) => status === 201,
    );
    expect((await pay(example, first.body.token)).status).toBe(410);
    expect((await send(example, 'DELETE', '/reservations', { token: second.body.token })).status).toBe(204);
    expect((await reserve(example, '14C')).status).toBe(201);
  });
});
