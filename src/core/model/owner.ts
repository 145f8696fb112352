/**
 * An owner is a path of branches, from its trace id down: `T`, `T/1`, `T/1/9f3k`. An owner is an ancestor of another if it
 * begins that one's path, and each is an ancestor of itself. A lock may be granted if everybody who holds it is an ancestor
 * of the one who asks (J. E. B. Moss, Nested Transactions, 1981).
 */
const separator = '/';

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
  const at = owner.indexOf(separator);
  return at < 0 ? owner : owner.slice(0, at);
}
