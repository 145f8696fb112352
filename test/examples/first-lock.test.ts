import { freePort } from '../support/processes/free-port.ts';
import { Example, stopExamples } from './example.ts';

const files = [
  ...['express', 'koa', 'fastify', 'hono'].map((name) => `first-lock/${name}.ts`),
  'nest-first-lock/server.ts',
];

describe.each(files)('%s', (file) => {
  let example: Example;
  beforeAll(async () => {
    example = await Example.start(file, { PORT: String(await freePort()) });
  });
  afterAll(stopExamples);

  it('The example takes each unit once, for six requests at once', async () => {
    const takes = [1, 2, 3, 4, 5, 6].map(() => fetch(example.url('/orders/42/units'), { method: 'POST' }));
    const replies = await Promise.all(takes);
    const bodies = (await Promise.all(replies.map((reply) => reply.json()))) as { units: number }[];
    expect(bodies.map(({ units }) => units).sort()).toEqual([4, 5, 6, 7, 8, 9]);
  });
});
