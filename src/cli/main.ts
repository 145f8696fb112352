#!/usr/bin/env node
import { readArguments, UsageError, usage } from './arguments.ts';
import { runBoard } from './board.ts';

/** The command `reenlock`. Exit codes: 0 after SIGINT or SIGTERM, 1 if it failed, 2 if it was called wrongly. */
async function main(args: readonly string[]): Promise<void> {
  try {
    const asked = readArguments(args, process.env);
    if (asked === 'help') process.stdout.write(usage);
    else await runBoard(asked);
  } catch (error) {
    const { message } = error as Error;
    process.stderr.write(error instanceof UsageError ? `reenlock: ${message}\n\n${usage}` : `reenlock: ${message}\n`);
    process.exitCode = error instanceof UsageError ? 2 : 1;
  }
}

void main(process.argv.slice(2));
