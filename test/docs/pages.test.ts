import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type MariadbServer, startMariadb } from '../support/mysql/server.ts';
import { type PostgresServer, startPostgres } from '../support/postgres/server.ts';
import { freePort } from '../support/processes/free-port.ts';
import { runScript, type Script, startScript } from '../support/processes/processes.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { blocksOf } from './markdown.ts';
import { isTutorial, type Module, pages, Workshop } from './workshop.ts';

/** How long a block may take. */
const blockMs = 50_000;
const marks = ['prelude', 'in', 'server', 'output', 'alias'];

// How blocks are marked is told in CONTRIBUTING.md.
describe('the guide pages', () => {
  const workshop = new Workshop();
  const guides = pages().filter((page) => !isTutorial(page));
  const modules = new Map(guides.map((page) => [page, workshop.add(page)]));
  const runner = workshop.write('run-block.ts', readFileSync(join(__dirname, 'run-block.ts'), 'utf8'));
  let built: (path: string) => string;
  let redis: RedisServer;
  beforeAll(async () => {
    built = workshop.build();
    redis = await startRedis();
    // The package is built and packed in it.
  }, 180_000);
  afterAll(async () => {
    workshop.remove();
    await redis.stop();
  });

  // One may be words and tables alone.
  describe.each(guides.filter((page) => modules.get(page)?.length !== 0))('%s', (page) => {
    const all = modules.get(page) ?? [];
    const servers = all.filter(isServer);
    const others = all.filter((module) => !isServer(module));
    let env: Record<string, string>;
    let running: Script[];
    let postgres: PostgresServer | undefined;
    let mariadb: MariadbServer | undefined;

    beforeAll(async () => {
      env = { REDIS_URL: redis.url };
      if (all.some(({ code }) => code.includes('DATABASE_URL'))) {
        postgres = await startPostgres();
        env.DATABASE_URL = postgres.url;
      }
      if (all.some(({ code }) => code.includes('MYSQL_URL'))) {
        mariadb = await startMariadb();
        env.MYSQL_URL = mariadb.url;
      }
      const ports = new Map<Module, number>();
      for (const server of servers) {
        const port = await freePort();
        ports.set(server, port);
        env[variableOf(server)] = `http://127.0.0.1:${port}`;
      }
      // They are there for as long as all the others may take.
      const timeoutMs = blockMs * (others.length + 1);
      running = servers.map((server) =>
        startScript(built(server.path), { execArgv: [], env: { ...env, PORT: String(ports.get(server)) }, timeoutMs }),
      );
      await Promise.all(running.map(address));
    });
    afterAll(async () => {
      await Promise.all(running.map((script) => script.stop()));
      await postgres?.stop();
      await mariadb?.stop();
    });

    it('has marks that are known', () => {
      const known = all.flatMap((module) => Object.keys(module.marks)).filter((mark) => !marks.includes(mark));
      expect(known).toEqual([]);
    });

    it.each(others.map((module) => [titleOf(module), module] as const))('%s', async (_, { path, marks, output }) => {
      const args = [built(path), ...(marks.in === undefined ? [] : [marks.in])];
      const { code, stdout, stderr } = await runScript(built(runner), { args, env, execArgv: [], timeoutMs: blockMs });
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toBe(output ?? '');
    });

    if (servers.length > 0)
      it('its servers have nothing to complain of', async () => {
        const results = await Promise.all(running.map((script) => script.stop()));
        expect(results.map(({ stderr }) => stderr)).toEqual(servers.map(() => ''));
      });
  });
});

it('a block in a job finds its trace, and one in anything else is an error', async () => {
  const workshop = new Workshop();
  try {
    const code = "import { lock } from 'reenlock';\nconsole.log((await lock.acquire('key')).key);\n";
    const runner = workshop.write('run-block.ts', readFileSync(join(__dirname, 'run-block.ts'), 'utf8'));
    const path = workshop.write('block.ts', code);
    const built = workshop.build();
    const run = (...where: string[]) => runScript(built(runner), { args: [built(path), ...where], execArgv: [] });
    expect(await run('job')).toEqual({ code: 0, stdout: 'key\n', stderr: '' });
    expect((await run()).stderr).toContain('ERR_LOCK_SCOPE');
    expect((await run('request')).stderr).toContain('not in a request');
  } finally {
    workshop.remove();
  }
});

it('a mark is what the comments right before a block say, and no others', () => {
  const text = '<!-- server -->\n\n<!-- in: job -->\n<!-- prelude: shop -->\n```ts\n// a.ts\n```\n```text\nb\n```\n';
  expect(blocksOf(text)).toEqual([
    { language: 'ts', code: '// a.ts\n', line: 5, file: 'a.ts', marks: { in: 'job', prelude: 'shop' } },
    { language: 'text', code: 'b\n', line: 8, file: undefined, marks: {} },
  ]);
});

function isServer({ marks }: Module): boolean {
  return marks.server !== undefined;
}

/** `ORDERS_URL` for `orders.ts`. */
function variableOf({ path }: Module): string {
  return `${basename(path, '.ts').toUpperCase().replace(/\W/g, '_')}_URL`;
}

function titleOf({ line, file, output }: Module): string {
  const name = file === undefined ? `the block in line ${line}` : `${file}, line ${line},`;
  return `${name} runs to its end, and prints ${output === undefined ? 'nothing' : 'what the page says'}`;
}

/** Once a server has said where it listens. */
async function address(script: Script): Promise<string> {
  for await (const line of script.lines()) if (line.startsWith('http://')) return line;
  throw new Error(`It ended without an address: ${(await script.exited).stderr}`);
}
