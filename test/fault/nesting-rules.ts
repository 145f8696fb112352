import type { HoldMode } from '../../src/core/index.ts';
import { isAncestor } from '../../src/core/model/owner.ts';

/** What the rules need to know of a hold. */
interface Owned {
  readonly owner: string;
  readonly mode: HoldMode;
  readonly permits: number | undefined;
}

interface NestedLife extends Owned {
  readonly process: string;
  readonly asked: number;
  readonly queued: number | undefined;
  readonly granted: number | undefined;
  readonly spans: readonly { readonly from: number; readonly until: number }[];
  readonly releases: readonly number[];
}

/** The trace of an owner, which is a path. */
export function traceOf({ owner }: Pick<Owned, 'owner'>): string {
  return owner.split('/', 1)[0] as string;
}

/** Whether two may not hold a key at once: neither is nested in the other. */
export function excludes(one: Owned, other: Owned): boolean {
  return !isWithin(one, other) && !isWithin(other, one) && conflict(one, other);
}

/** Whether two may not have one fence: it tells traces apart, not their branches. */
export function differ(one: Owned, other: Owned): boolean {
  return traceOf(one) !== traceOf(other) && conflict(one, other);
}

/**
 * The calls to another process for a key that their caller held meanwhile, and no branch beside them: none of these may wait. A
 * branch may have the key that was not released, for its process was killed, or its grant came when it had given up.
 */
export function nestedCalls<T extends NestedLife>(lives: readonly T[]): { readonly call: T; readonly caller: T }[] {
  const found: { call: T; caller: T }[] = [];
  const traces = new Map<string, T[]>();
  for (const life of lives) traces.set(traceOf(life), [...(traces.get(traceOf(life)) ?? []), life]);
  for (const call of lives) {
    const { asked, granted, queued = granted, process } = call;
    if (queued === undefined || granted === undefined) continue;
    const ofTrace = traces.get(traceOf(call))!.filter((life) => life !== call);
    const hasIt = ({ spans }: T): boolean => spans.some(({ from, until }) => from <= asked && until >= queued);
    const caller = ofTrace.find((life) => life.process !== process && isWithin(call, life) && hasIt(life));
    const mayHaveIt = (life: T): boolean => life.asked <= queued && (life.releases[0] ?? asked) >= asked;
    if (caller !== undefined && !ofTrace.some((life) => !isWithin(call, life) && mayHaveIt(life))) {
      found.push({ call, caller });
    }
  }
  return found;
}

function isWithin({ owner }: Owned, { owner: around }: Owned): boolean {
  return isAncestor(around, owner);
}

function conflict(one: Owned, other: Owned): boolean {
  return one.mode === 'write' || other.mode === 'write' || one.permits !== other.permits;
}
