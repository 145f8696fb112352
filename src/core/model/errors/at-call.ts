import type { CallSite } from '../../base/call-site.ts';
import { isLockError } from './lock-error.ts';

/** Gives a later failure of a call the stack of that call. */
export async function failAt<T>(site: CallSite, call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    setCallSite(error, site);
    throw error;
  }
}

/** Gives an error the stack of the call that failed. A refusal gets only its first frame. */
export function setCallSite(error: unknown, site: Pick<CallSite, 'frames'> | undefined): void {
  const frames = site?.frames ?? [];
  if (frames.length === 0 || !isLockError(error)) return;
  const isRefusal = error.stack?.includes('\n    at ') !== true;
  error.stack = [`${error.name}: ${error.message}`, ...(isRefusal ? frames.slice(0, 1) : frames)].join('\n');
}
