import type { IncomingMessage } from 'node:http';
import type { LockError } from 'reenlock';
import type { Call, GuardOptions } from './frameworks.ts';

/**
 * The options of a guard as the `lockOn` of a framework takes them: their type fits each. `callOf` gets what its middleware is
 * called with.
 */
export function adapted(
  { skip, handler, ...rest }: GuardOptions,
  callOf: (...args: never[]) => Call,
  sendProblem: unknown,
): never {
  return {
    ...rest,
    ...(skip && { skip: (...args: never[]) => skip(callOf(...args)) }),
    ...(handler === 'problem' && { handler: sendProblem }),
    ...(typeof handler === 'function' && {
      handler: (error: LockError, ...args: never[]) => handler(error, callOf(...args)),
    }),
  } as never;
}

/** Reads a body of JSON into `req.body`. */
export async function readJson(req: IncomingMessage): Promise<void> {
  const chunks = (await req.toArray()) as Buffer[];
  Object.assign(req, { body: JSON.parse(Buffer.concat(chunks).toString()) });
}
