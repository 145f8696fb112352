import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { type Hold, isLockError, traceHeaders } from '../../../src/core/index.ts';
import { type Line, Player, tree, type Witness } from '../../support/nesting/trees.ts';
import type { Recorder } from '../recorder.ts';

/** The header with the path that a call has in its tree, whatever the package makes of it. */
export const pathHeader = 'X-Path';

/** Where a process is found by others: each writes down its port in their folder. */
export interface Home {
  readonly name: string;
  readonly folder: string;
}

const ending = '.port';

/** Says where this process listens. */
export function announce({ name, folder }: Home, port: number): void {
  writeFileSync(join(folder, `${name}${ending}`), String(port));
}

/** Plays trees of branches whose calls also go to other processes, some of which are dead. */
export class TreeWork {
  readonly #recorder: Recorder;
  readonly #home: Home;
  readonly #random: () => number;
  readonly #keys: readonly string[];
  readonly #player: Player;
  #calls = 0;

  /** `keys` are those that the calls ask for; `prefix` comes before those of the tree. */
  constructor(recorder: Recorder, home: Home, random: () => number, keys: readonly string[], prefix: string) {
    this.#recorder = recorder;
    this.#home = home;
    this.#random = random;
    this.#keys = keys;
    this.#player = new Player(
      new RecordingWitness(recorder),
      (line, holds) => this.#pause(line, holds),
      prefix,
      isLockError,
    );
  }

  async play(): Promise<void> {
    const [step] = fc.sample(tree, { seed: Math.floor(this.#random() * 2 ** 31), numRuns: 1 });
    await this.#player.request(step!, { locks: this.#recorder.locks });
  }

  async #pause({ path }: Line, holds: readonly Hold[]): Promise<void> {
    await sleep(this.#random() * 10);
    const keys = this.#random() < 0.5 && holds.length > 0 ? holds.map(({ key }) => key) : this.#keys;
    if (this.#random() < 0.4) await this.#call(path, this.#some(keys));
  }

  /** Calls another process, which locks below this branch. It may not be there any more, and the caller may not wait for long. */
  async #call(path: string, key: string): Promise<void> {
    const { folder, name } = this.#home;
    const others = readdirSync(folder).filter((file) => file.endsWith(ending) && file !== `${name}${ending}`);
    if (others.length === 0) return;
    this.#calls += 1;
    const port = readFileSync(join(folder, this.#some(others)), 'utf8');
    try {
      const response = await fetch(`http://127.0.0.1:${port}/${key}`, {
        method: 'POST',
        headers: { ...traceHeaders(), [pathHeader]: `${path}/${name}.${this.#calls}`, Connection: 'close' },
        signal: AbortSignal.timeout(Math.ceil(1_000 * (0.1 + this.#random()))),
      });
      await response.text();
    } catch (error) {
      if ((error as Error).name !== 'TimeoutError' && !(error instanceof TypeError)) throw error;
    }
  }

  #some(all: readonly string[]): string {
    return all[Math.floor(this.#random() * all.length)] as string;
  }
}

interface Left {
  readonly hold: Hold;
  readonly id: string;
}

/** Writes who is inside by the paths of the tree, whatever the package makes of it. */
class RecordingWitness implements Witness {
  readonly #recorder: Recorder;
  readonly #left = new Map<Line, Left[]>();

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
  }

  /** The store is told of re-entries from now on: a branch must not miss those of another that called a service before. */
  begin(): void {
    traceHeaders();
  }

  enter(hold: Hold, line: Line): (isLeft: boolean) => void {
    const id = this.#recorder.enter(hold, line.path);
    return (isLeft) => {
      if (isLeft) this.#left.set(line, [...(this.#left.get(line) ?? []), { hold, id }]);
      else this.#recorder.leaving(line.path, hold.key, id);
    };
  }

  end(line: Line, isScope: boolean): void {
    for (const { hold, id } of this.#left.get(line) ?? []) {
      this.#recorder.leaving(line.path, hold.key, id);
      if (!isScope) this.enter(hold, line.around as Line)(true);
    }
    this.#left.delete(line);
  }
}
