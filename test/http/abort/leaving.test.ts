import { setTimeout as pause } from 'node:timers/promises';
import { lock, runInTrace } from 'reenlock';
import { isWhole } from '../../fault/seed.ts';
import { type Gate, gate } from '../../support/gate.ts';
import { type Call, describeFrameworks, type Framework } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';
import { bodyBytes, half, others, own, readers, type Stage } from './leaving-ways.ts';

/** So many milliseconds, and turns of the event loop, a handler lives. */
const lifeMs = 8;
/** Without the whole, so many lives of each framework. */
const sampleSize = 150;

/** One life of a handler: how it reads the body of its request, what happens, and in which millisecond. */
interface Life {
  readonly reader: string;
  readonly act: string;
  readonly isOwn: boolean;
  readonly atMs: number;
}

function* allLives(): Generator<Life> {
  for (const reader of Object.keys(readers))
    for (const [isOwn, acts] of [
      [false, others],
      [true, own],
    ] as const)
      for (const act of Object.keys(acts)) for (let atMs = 0; atMs < lifeMs; atMs++) yield { reader, act, isOwn, atMs };
}

/** All of them, or some: another part in each run, and each of them has its turn. */
function chosenLives(): readonly Life[] {
  const all = [...allLives()];
  if (isWhole) return all;
  const first = Math.floor(Math.random() * all.length);
  // No divisor of the number of acts or of milliseconds.
  const step = Math.floor(all.length / sampleSize) | 1;
  return Array.from({ length: sampleSize }, (_, i) => all[(first + i * step) % all.length] as Life);
}

/** Plays lives one after the other on one server, each with a rival that waits for its key. */
class Lives {
  readonly #framework: Framework;
  #stage: ServerStage | undefined;
  #life: Life | undefined;
  #inside = 0;
  /** Opened by the handler in the millisecond in which something is to happen. */
  #due: Gate = gate();
  #begun: Gate = gate();
  #call: Call | undefined;
  #target: Stage | undefined;

  constructor(framework: Framework) {
    this.#framework = framework;
  }

  async start(): Promise<void> {
    this.#stage = await ServerStage.start(this.#framework, (app) =>
      app.route('/first', this.#framework.lockOn('k'), (call) => this.#handle(call)),
    );
    this.#stage.locks.on('warning', ({ message }) => this.#stage?.note(`warning ${message}`));
  }

  /** Throws if the key changes hands before the handler has ended, or does not after that. */
  async play(life: Life): Promise<void> {
    const stage = this.#stage as ServerStage;
    this.#life = life;
    this.#due = gate();
    this.#begun = gate();
    const client = await stage.connect();
    const headers = [`Content-Length: ${bodyBytes}`];
    client.request({ path: '/first', trace: 'first', method: 'POST', headers }).socket.write(half);
    await this.#begun;
    const call = this.#call as Call;
    this.#target = { server: stage.server, client, call, socket: call.req.socket };
    const rival = runInTrace(() => lock.run('k', () => this.#expectAlone()), { locks: stage.locks, traceId: 'rival' });
    await this.#due;
    if (!life.isOwn) await others[life.act]?.(this.#target);
    await rival;
    await stage.free('k');
    client.destroy();
    expect(stage.journal.filter((line) => /^(lost|warning)/.test(line))).toEqual([]);
    stage.journal.length = 0;
  }

  async #handle(call: Call): Promise<void> {
    const { reader, act, isOwn, atMs } = this.#life as Life;
    this.#call = call;
    this.#inside += 1;
    this.#begun.open();
    // Its failure is its own.
    void (async () => readers[reader]?.(call.req))().catch(() => {});
    let mayBeFree = false;
    try {
      for (let ms = 0; ms < lifeMs; ms++) {
        if (ms === atMs) {
          // The test needs its turn to know this request.
          while (this.#target?.call !== call) await pause(0);
          if (isOwn) own[act]?.(this.#target);
          this.#due.open();
          mayBeFree = isOwn && !this.#framework.awaitsHandlers;
          if (mayBeFree) this.#inside -= 1;
        }
        await pause(1);
        if (!mayBeFree) expect(await this.#stage?.holder('k')).toBe('first');
      }
    } catch (error) {
      this.#stage?.note(`warning ${error}`);
    }
    if (!mayBeFree) this.#inside -= 1;
    if (!isOwn) call.send('late');
  }

  #expectAlone(): void {
    if (this.#inside > 0) this.#stage?.note('warning: the rival is inside with the handler');
  }
}

describeFrameworks('A handler whose request is left and destroyed in all ways', (framework) => {
  it(
    '[leaving-01] A handler keeps its hold until its end, however its client disconnects or its request is destroyed, and the process lives',
    async () => {
      const lives = new Lives(framework);
      await lives.start();
      const chosen = chosenLives();
      for (const life of chosen) {
        try {
          await lives.play(life);
        } catch (cause) {
          throw new Error(`${life.reader}; in ms ${life.atMs}, ${life.act}: ${cause}`, { cause });
        }
      }
      process.stdout.write(`${framework.name}: ${chosen.length} lives of a handler\n`);
    },
    isWhole ? 600_000 : undefined,
  );
});
