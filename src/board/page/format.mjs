// Numbers, times and branches as people read them.

/**
 * A duration, in the two largest units that matter. Below ten seconds with tenths: most locks live that short.
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

/** @param {number} number */
function two(number) {
  return String(number).padStart(2, '0');
}
