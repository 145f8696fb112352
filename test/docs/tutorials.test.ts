import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { createConsumer, packPackage } from '../package/packed.ts';
import { type PostgresServer, startPostgres } from '../support/postgres/server.ts';
import { freePort } from '../support/processes/free-port.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { type Block, blocksOf, readDocument } from './markdown.ts';
import { isTutorial, pages } from './workshop.ts';

/** The package may have to be built and packed. */
const tutorialMs = 300_000;

// How blocks are marked is told in CONTRIBUTING.md.
describe('a tutorial', () => {
  let redis: RedisServer;
  let postgres: PostgresServer;
  let ports: Readonly<Record<string, number>>;
  let consumer: ReturnType<typeof createConsumer>;
  let running: Map<string, ChildProcess>;
  beforeAll(async () => {
    redis = await startRedis();
    postgres = await startPostgres();
    packPackage();
  }, tutorialMs);
  beforeEach(async () => {
    const tools = ['.bin/tsx', 'tsx'];
    consumer = createConsumer(packPackage(), Object.fromEntries(tools.map((name) => [name, `node_modules/${name}`])));
    ports = { 3000: await freePort(), 3001: await freePort(), 5432: postgres.port, 6379: redis.port };
    running = new Map();
  });
  afterEach(async () => {
    await Promise.all([...running.keys()].map(stop));
    consumer.remove();
  });
  afterAll(async () => {
    await redis.stop();
    await postgres.stop();
  });

  it.each(pages().filter(isTutorial))(
    'The files and commands of %s, one after the other from an empty folder, print what it says',
    async (page) => {
      const blocks = blocksOf(readDocument(page));
      for (const [at, block] of blocks.entries()) {
        if (block.language === 'ts') writeFileSync(join(consumer.folder, block.file as string), here(block.code));
        if (block.language === 'sh') await run(block, blocks[at + 1]);
      }
    },
    tutorialMs,
  );

  async function run({ code, marks, line }: Block, next: Block | undefined): Promise<void> {
    if (marks.start !== undefined) return start(code);
    const printed = execFileSync('bash', ['-ec', here(withoutInstall(code))], options());
    if (next?.marks.output !== undefined) expect(`line ${line}: ${printed}`).toBe(`line ${line}: ${next.code}`);
  }

  /** Starts a server, and ends the one that the same command has started before, as a reader would with Ctrl-C. */
  async function start(command: string): Promise<void> {
    await stop(command);
    const child = spawn('bash', ['-c', here(command)], {
      ...options(),
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    running.set(command, child);
    let complaints = '';
    child.stderr.on('data', (chunk) => (complaints += chunk));
    for await (const line of createInterface({ input: child.stdout })) if (line.startsWith('http://')) return;
    throw new Error(`${command} ended without an address: ${complaints}`);
  }

  async function stop(command: string): Promise<void> {
    const child = running.get(command);
    if (child === undefined) return;
    running.delete(command);
    const exited = once(child, 'close');
    // Negative: its whole group, with the processes that the shell and npx have started.
    process.kill(-(child.pid as number), 'SIGINT');
    await exited;
  }

  /** The package and its peers are in the folder already: what a page installs must be among them. */
  function withoutInstall(commands: string): string {
    return commands.replace(/^npm install (.*)$/gm, (_, names: string) => {
      const missing = names.split(' ').filter((name) => !existsSync(join(consumer.folder, 'node_modules', name)));
      expect(missing).toEqual([]);
      return '';
    });
  }

  /** With the ports of this test for those of the page. */
  function here(text: string): string {
    return Object.entries(ports).reduce((changed, [port, free]) => changed.replaceAll(port, String(free)), text);
  }

  function options() {
    return { cwd: consumer.folder, encoding: 'utf8', env: { ...process.env, npm_config_offline: 'true' } } as const;
  }
});
