import { hostname } from 'node:os';

const separator = '~';
const maxInstance = 64;

/** The process of a hold that is detached: none. No process has this name, and nobody listens to it. */
export const detachedProcess = '~detached';

/**
 * The name of a process in its store: its `instance`, for operators, and 128 random bits, which nobody can guess. Every hold has
 * the name, so the random part is written short.
 */
export function processName(instance: string, randomId: string): string {
  return instance + separator + Buffer.from(randomId, 'hex').toString('base64url');
}

/** The `instance` in the name of a process; undefined if it has none. */
export function instanceOf(process: string): string | undefined {
  const end = process.lastIndexOf(separator);
  return end > 0 ? process.slice(0, end) : undefined;
}

/** Host name and process id, as an instance may be written. */
export function defaultInstance(): string {
  const end = `:${process.pid}`;
  const host = hostname().replace(/[^\w.-]/g, '-');
  return (/^[A-Za-z0-9]/.test(host) ? host : `host${host}`).slice(0, maxInstance - end.length) + end;
}
