import type { CallSite } from '../base/call-site.ts';
import { setCallSite } from './errors.ts';

/** Gives a later failure of a call the stack of that call. */
export async function failAt<T>(site: CallSite, call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    setCallSite(error, site);
    throw error;
  }
}
