import { readFileSync, writeFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { createLocks } from 'reenlock';
import { RedisStore } from 'reenlock/redis';
import { freePort } from '../support/processes/free-port.ts';
import { type Script, startScript, tsx } from '../support/processes/processes.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { blocksOf, readDocument } from './markdown.ts';
import { typesOfTables } from './tables.ts';
import { documents, nestPage, Workshop } from './workshop.ts';

const quickStart = 'docs/start/quick-start.md';

describe('the code of the documents', () => {
  let workshop: Workshop;
  beforeAll(() => {
    workshop = new Workshop();
    // The page about Nest has compiler options of its own.
    for (const document of documents()) if (document !== nestPage) workshop.add(document);
  });
  afterAll(() => workshop.remove());

  it('compiles under the options of this repository, and its tables name what the types have', () => {
    workshop.write('tables.ts', typesOfTables());
    workshop.write('old-libraries.d.ts', readDocument('test/docs/old-libraries.d.ts'));
    // What is found shows that the compiler has looked.
    workshop.write('mistake.ts', "import { getLock } from 'reenlock';\nvoid getLock('k').run();\n");
    expect(workshop.mistakes()).toEqual([expect.stringMatching(/^mistake\.ts.*TS2554/)]);
  });

  it('compares the fence with the statements that the example runs', () => {
    const blocks = blocksOf(readDocument('docs/concepts/holds.md')).filter(({ language }) => language === 'sql');
    const statements = blocks.flatMap(({ code }) => code.match(/^\w[^;]+(?=;)/gm) ?? []);
    expect(statements).toHaveLength(2);
    const example = readDocument('examples/fenced-sql/fenced-sql.ts');
    for (const statement of statements) expect(flat(example)).toContain(flat(statement));
  });

  it('The program of the README lets requests for one order take turns', async () => {
    const path = workshop.path('README.md', 'server.ts');
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll('3000', String(await freePort())));
    const server = startScript(path, { execArgv: tsx });
    const url = await addressOf(server);
    const answers = await Promise.all(Array.from({ length: 6 }, () => takeUnit(url, '42')));
    expect(answers.map(({ units }) => units).sort()).toEqual([4, 5, 6, 7, 8, 9]);
    expect(await takeUnit(url, '43')).toEqual({ units: 9 });
    expect(await server.stop()).toMatchObject({ stderr: '' });
  });

  describe('the quick start on Redis', () => {
    let redis: RedisServer;
    let server: Script;
    let url: string;
    beforeEach(async () => {
      redis = await startRedis();
      const env = { REDIS_URL: redis.url, PORT: String(await freePort()) };
      server = startScript(workshop.path(quickStart, 'express-server.ts'), { env, execArgv: tsx });
      url = await addressOf(server);
    });
    afterEach(async () => {
      await server.stop();
      await redis.stop();
    });

    it('runs two requests for one order one after the other', async () => {
      const answers = await Promise.all(['1', '1', '2'].map((id) => takeUnit(url, id)));
      const [first, second, other] = answers as [Answer, Answer, Answer];
      // Side by side, both would read 10 and leave 9.
      expect([first.units, second.units].sort()).toEqual([8, 9]);
      expect(first.fence > second.fence).toBe(first.units < second.units);
      expect(other.units).toBe(9);
      expect(await takeUnit(url, '1')).toMatchObject({ units: 7 });
    });

    it.each(['SIGTERM', 'SIGINT'] as const)(
      'ends on %s, with nothing to complain of and no lock left',
      async (signal) => {
        await takeUnit(url, '1');
        server.kill(signal);
        expect(await server.exited).toMatchObject({ code: 0, stderr: '' });
        const client = new Redis(redis.url);
        const locks = createLocks({ store: new RedisStore({ client }) });
        expect((await locks.list()).locks).toEqual([]);
        await locks.close();
        await client.quit();
      },
    );
  });
});

async function addressOf(server: Script): Promise<string> {
  for await (const line of server.lines()) if (line.startsWith('http://')) return line;
  throw new Error(`It ended without an address: ${(await server.exited).stderr}`);
}

interface Answer {
  readonly units: number;
  readonly fence: number;
}

async function takeUnit(url: string, id: string): Promise<Answer> {
  const response = await fetch(`${url}/orders/${id}/units`, { method: 'POST' });
  expect(response.status).toBe(200);
  return (await response.json()) as Answer;
}

function flat(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}
