import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';

export interface ScriptOptions {
  readonly args?: readonly string[];
  /** Added to this process's environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** What compiles the file: by default what starts in half of the time of `tsx`, and knows CommonJS only. */
  readonly execArgv?: readonly string[];
  /** After this long the process is killed; 50 s by default. */
  readonly timeoutMs?: number;
}

export interface ScriptResult {
  /** Null when a signal ended the process. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running script. Messages and lines that came before somebody asked for them are kept. */
export interface Script {
  readonly pid: number;
  /** Resolves when the process is over, however it ended. */
  readonly exited: Promise<ScriptResult>;
  send(message: unknown): void;
  /** The first message not taken yet that fits; rejects when the process ends without one. */
  once<T = unknown>(fits?: (message: T) => boolean): Promise<T>;
  /** The lines of the standard output, from the first one. */
  lines(): AsyncIterable<string>;
  kill(signal: NodeJS.Signals): void;
  /** Sends SIGTERM, after ten seconds SIGKILL, and awaits the exit. */
  stop(): Promise<ScriptResult>;
}

/** What the guides tell to run TypeScript with, and what ES modules need. */
export const tsx: readonly string[] = ['--import', 'tsx'];

const plainTypeScript = ['--require', require.resolve('./plain-typescript.cjs')];
const root = join(__dirname, '../../..');
const stopMs = 10_000;

/** Runs a TypeScript file in a process of its own until it ends; rejects when it takes too long. */
export async function runScript(file: string, options: ScriptOptions = {}): Promise<ScriptResult> {
  return startScript(file, options).exited;
}

/** Starts a TypeScript file in a process of its own, with a message channel (`process.send`) to it. */
export function startScript(file: string, options: ScriptOptions = {}): Script {
  const child = fork(file, [...(options.args ?? [])], {
    cwd: root,
    env: { ...process.env, ...options.env },
    execArgv: [...(options.execArgv ?? plainTypeScript)],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const exited = result(child, file, options.timeoutMs ?? 50_000);
  // A caller that reads a line or a message sees the end there; `exited` may stay unread.
  exited.catch(() => {});
  return {
    pid: child.pid as number,
    exited,
    // What does not reach a process that was killed is never answered: `once` tells of its end.
    send: (message) => void child.send(message as object, () => {}),
    once: inbox(child, exited),
    lines: lineReader(child),
    kill: (signal) => void child.kill(signal),
    async stop() {
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), stopMs);
      return exited.finally(() => clearTimeout(timer));
    },
  };
}

async function result(child: ChildProcess, file: string, timeoutMs: number): Promise<ScriptResult> {
  let stdout = '';
  let stderr = '';
  let isLate = false;
  child.stdout?.on('data', (chunk) => (stdout += chunk));
  child.stderr?.on('data', (chunk) => (stderr += chunk));
  const timer = setTimeout(() => {
    isLate = true;
    child.kill('SIGKILL');
  }, timeoutMs);
  const [code] = (await once(child, 'close').finally(() => clearTimeout(timer))) as [number | null];
  if (isLate) throw new Error(`${file} took longer than ${timeoutMs} ms:\n${stdout}\n${stderr}`);
  return { code, stdout, stderr };
}

function inbox(child: ChildProcess, exited: Promise<ScriptResult>): Script['once'] {
  const messages: unknown[] = [];
  // Each call that awaits a message adds a listener; there may be any number of them.
  const arrivals = new EventEmitter().setMaxListeners(0);
  child.on('message', (message) => {
    messages.push(message);
    arrivals.emit('message');
  });
  const over = exited.then(({ code, stderr }) => {
    throw new Error(`The script ended (code ${code}) without the awaited message:\n${stderr}`);
  });
  over.catch(() => {});

  return async <T>(fits: (message: T) => boolean = () => true): Promise<T> => {
    while (true) {
      const index = messages.findIndex((message) => fits(message as T));
      if (index >= 0) return messages.splice(index, 1)[0] as T;
      await Promise.race([once(arrivals, 'message'), over]);
    }
  };
}

function lineReader(child: ChildProcess): Script['lines'] {
  const stdout = child.stdout?.pipe(new PassThrough()) as PassThrough;
  return () => createInterface({ input: stdout });
}
