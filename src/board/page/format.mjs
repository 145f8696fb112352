// Numbers, times and branches as people read them.

/**
 * A duration, in its two largest units. Below ten seconds with tenths, since most locks are that short.
 * @param {number} ms
 */
export function duration(ms) {
  const seconds = Math.max(0, ms) / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(Math.round(seconds) / 60);
  if (minutes < 60) return `${minutes} min ${two(Math.round(seconds) % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${two(minutes % 60)} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/**
 * A number with its unit.
 * @param {number} number
 * @param {string} one
 * @param {string} many
 */
export function counted(number, one, many = `${one}s`) {
  return `${number.toLocaleString('en')} ${number === 1 ? one : many}`;
}

/**
 * The path of a branch, its trace first.
 * @param {{ traceId?: string | undefined, branch: string }} of
 */
export function branchPath({ traceId, branch }) {
  if (traceId === undefined) return 'a detached hold';
  return branch === '' ? traceId : `${traceId}/${branch}`;
}

const maxNamed = 3;

/**
 * Branches of one trace, the first few of many.
 * @param {readonly string[]} branches
 */
export function branchNames(branches) {
  const names = branches.slice(0, maxNamed).map((branch) => (branch === '' ? 'the root' : `branch ${branch}`));
  const rest = branches.length - names.length;
  return [...names, ...(rest > 0 ? [counted(rest, 'other')] : [])].join(', ');
}

/**
 * A branch, its first and last parts if it has more than two.
 * @param {string} branch
 */
export function shortBranch(branch) {
  const parts = branch.split('/');
  return parts.length > 2 ? `${parts[0]}/…/${parts.at(-1)}` : branch;
}

/** @param {number} number */
function two(number) {
  return String(number).padStart(2, '0');
}
