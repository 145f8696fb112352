import { batch } from './batch.mjs';
import { cas, casHandOff } from './cas.mjs';
import { contendedBatch } from './contended-batch.mjs';
import { keys, processes, readers, waiters } from './curves.mjs';
import { deadlock } from './deadlock.mjs';
import { expressMemory } from './express-memory.mjs';
import { expressRedis } from './express-redis.mjs';
import { guardPath } from './guard-path.mjs';
import { handOff } from './hand-off.mjs';
import { hotKey, hotKeyFar } from './hot-key.mjs';
import { hotKeyProcesses } from './hot-key-processes.mjs';
import { listeners } from './listeners.mjs';
import { oneAtATime } from './one-at-a-time.mjs';
import { outage } from './outage.mjs';
import { reEntry } from './re-entry.mjs';
import { read } from './read.mjs';
import { run, runInMemory } from './run.mjs';
import { wide } from './wide.mjs';

/**
 * All scenarios, in the order in which they run. A scenario says
 *
 *   what is measured            `name`, `title`, `what`, and `columns`: figure → heading
 *   of whom                     `contenders`: the rows of its table
 *   compared with whom          `reference`: a row, and the columns that get a ratio to it
 *   for how long                `rounds` and `size`; `quick` has what `--quick` replaces
 *   how                         `open(names, context)` → session with `close()`, all warm;
 *                               `measure(session, name, context)` → the figures of one round
 *   what this package promises  `goals(comparison)`
 *   what its README says        `headlines(comparison)`
 *
 * `isCurve`: the rows are sizes, and `chart` says how they are drawn. `isCount`: the figures are counts, not times.
 */
export const scenarios = [
  oneAtATime,
  wide,
  read,
  batch,
  contendedBatch,
  reEntry,
  run,
  runInMemory,
  listeners,
  hotKey,
  hotKeyFar,
  hotKeyProcesses,
  handOff,
  cas,
  casHandOff,
  deadlock,
  keys,
  waiters,
  readers,
  processes,
  expressMemory,
  expressRedis,
  guardPath,
  outage,
];
