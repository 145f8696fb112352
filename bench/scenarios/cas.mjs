import { handOff } from './hand-off.mjs';
import { oneAtATime } from './one-at-a-time.mjs';

const contenders = [
  'reenlock',
  'reenlock on PostgreSQL',
  'reenlock on Redis, CAS',
  'reenlock on PostgreSQL, CAS',
  'reenlock on MariaDB, CAS',
];
const pollMs = 100;
const nothing = () => [];

export const cas = {
  ...oneAtATime,
  name: 'cas',
  title: 'One at a time, with `CasStore`',
  what: 'As `one-at-a-time`, for the adapters of `CasStore`, and beside them the stores that have messages.',
  contenders,
  reference: { name: 'reenlock', columns: ['p50Us', 'serverUs'] },
  goals: nothing,
  headlines: nothing,
};

export const casHandOff = {
  ...handOff,
  name: 'cas-hand-off',
  title: 'Hand-off from process to process, with `CasStore`',
  what:
    'As `hand-off`, for the adapters of `CasStore`, with `pollMs: 100`, and beside them the stores that have messages. A waiter ' +
    'finds out with its next poll; the release comes at any moment between two.',
  contenders,
  rounds: 20,
  size: { handOffs: 24, limitMs: 1_000, spreadMs: pollMs },
  quick: { rounds: 5 },
  reference: { name: 'reenlock', columns: ['p50Us'] },
  goals: nothing,
  headlines: nothing,
};
