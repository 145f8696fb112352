import { batch } from './batch.mjs';
import { keys, readers, waiters } from './curves.mjs';
import { deadlock } from './deadlock.mjs';
import { expressMemory } from './express-memory.mjs';
import { expressRedis } from './express-redis.mjs';
import { handOff } from './hand-off.mjs';
import { hotKey, hotKeyFar } from './hot-key.mjs';
import { hotKeyProcesses } from './hot-key-processes.mjs';
import { oneAtATime } from './one-at-a-time.mjs';
import { reEntry } from './re-entry.mjs';
import { wide } from './wide.mjs';

/**
 * All scenarios, in the order in which they run. Each says what is measured (`what`, `columns`), of whom (`contenders`),
 * how (`open` → session, `measure(session)` → figures of one round), and what this package promises (`targets`).
 */
export const scenarios = [
  oneAtATime,
  wide,
  batch,
  reEntry,
  hotKey,
  hotKeyFar,
  hotKeyProcesses,
  handOff,
  deadlock,
  keys,
  waiters,
  readers,
  expressMemory,
  expressRedis,
];
