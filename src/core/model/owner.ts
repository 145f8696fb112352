/**
 * An owner is a path of branches, from its trace id down: `T`, `T/1`, `T/1/9f3k`. An owner is an ancestor of another if it
 * begins that one's path, and each is an ancestor of itself. A lock may be granted if all its holders are ancestors of the
 * requesting owner (J. E. B. Moss, Nested Transactions, 1981).
 *
 * A mark and a random id behind the trace id make the owner private, as in `T~k3f9/1`: only the request that has the id, or
 * nobody, re-enters what it holds. No trace id has such a mark, so no header can bring one. A detached hold has no trace id.
 */
const separator = '/';
const bare = '/-';
const privateMark = '~';

/** Whether one owner is an ancestor of another, or the same. */
export function isAncestor(ancestor: string, owner: string): boolean {
  if (!owner.startsWith(ancestor)) return false;
  return owner.length === ancestor.length || owner[ancestor.length] === separator;
}

/** An owner and its ancestors, the root first. */
export function ancestorsOf(owner: string): readonly string[] {
  let at = owner.indexOf(separator);
  if (at < 0) return [owner];
  const ancestors: string[] = [];
  for (; at >= 0; at = owner.indexOf(separator, at + 1)) ancestors.push(owner.slice(0, at));
  ancestors.push(owner);
  return ancestors;
}

/** The first part of an owner's path. */
export function rootOf(owner: string): string {
  return until(separator, owner);
}

/** The trace of an owner; empty for a detached hold, which belongs to none. */
export function traceIdOf(owner: string): string {
  return until(privateMark, rootOf(owner));
}

/** The path of an owner below its trace, as `1/9f3k`; empty for the root, and for a bare trace id. */
export function branchOf(owner: string): string {
  const at = owner.indexOf(separator);
  if (at < 0) return '';
  return owner.slice(isBareAt(owner, at) ? at + bare.length + 1 : at + 1);
}

/** The path of an owner as people read it: the trace id and the branch; empty for a detached hold. */
export function pathOf(owner: string): string {
  const branch = branchOf(owner);
  return branch === '' ? traceIdOf(owner) : traceIdOf(owner) + separator + branch;
}

/** The form of the random ids that this package makes. */
const madeId = /^[\da-f]{32}$/;

/**
 * The one owner of all requests and jobs with a bare trace id, one without a branch. An id from elsewhere is an owner. If a
 * request or job of this package made it, that is the trace's root, and the others are nested in it: they may enter what the root
 * holds, and it may not enter what they hold.
 */
export function bareOwner(traceId: string): string {
  return madeId.test(traceId) ? traceId + bare : traceId;
}

function isBareAt(owner: string, at: number): boolean {
  const end = at + bare.length;
  return owner.startsWith(bare, at) && (end === owner.length || owner[end] === separator);
}

/** The owner of the same branch that only holders of the random id can re-enter. */
export function privateOwner(owner: string, randomId: string): string {
  const root = rootOf(owner);
  return root + privateMark + randomId + owner.slice(root.length);
}

/** The owner of a detached hold: nobody's. */
export function detachedOwner(holdId: string): string {
  return privateMark + holdId;
}

function until(mark: string, text: string): string {
  const at = text.indexOf(mark);
  return at < 0 ? text : text.slice(0, at);
}
