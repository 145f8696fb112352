/**
 * The tables. Times that end in `_ms` or `_us` are of the server's clock, since 1970; fences are microseconds, too. Every
 * operation on a lock first locks its row in `locks`: what the other tables have about it changes only below that.
 */
export const tables = `
CREATE TABLE IF NOT EXISTS {schema}.locks (
  id text COLLATE "C" PRIMARY KEY,
  -- The last fence: all holds have it. It outlives them, so that it rises even where the clock is set back.
  fence bigint NOT NULL DEFAULT 0,
  -- How many holds there are, how many of them are writers', whose those are, and how many are claims.
  holds integer NOT NULL DEFAULT 0,
  writes integer NOT NULL DEFAULT 0,
  writer text COLLATE "C",
  claims integer NOT NULL DEFAULT 0,
  -- No lease of a hold ends before this.
  earliest_ms bigint,
  waiters integer NOT NULL DEFAULT 0,
  -- When nothing of this is needed any more. Rounded up by minutes, so that few updates change the index.
  gone_ms bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
CREATE INDEX IF NOT EXISTS locks_gone ON {schema}.locks (gone_ms);

CREATE TABLE IF NOT EXISTS {schema}.holds (
  lock_id text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  hold_id text COLLATE "C" NOT NULL,
  process text COLLATE "C" NOT NULL,
  mode text NOT NULL,
  ends_ms bigint NOT NULL,
  -- Handed off, and not renewed yet.
  is_claim boolean NOT NULL,
  -- Its fence rose after it was granted: it may be renewed with the one that it got.
  is_raised boolean NOT NULL DEFAULT false,
  nr bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (lock_id, owner, hold_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

CREATE TABLE IF NOT EXISTS {schema}.waiters (
  lock_id text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  hold_id text COLLATE "C" NOT NULL,
  process text COLLATE "C" NOT NULL,
  mode text NOT NULL,
  claim_ms integer NOT NULL,
  priority integer NOT NULL,
  since_us bigint NOT NULL,
  -- The order: since when it waits, each degree of priority ten seconds earlier.
  place bigint NOT NULL,
  nr bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (lock_id, owner, hold_id)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
CREATE INDEX IF NOT EXISTS waiters_in_order ON {schema}.waiters (lock_id, place, nr);

-- The processes that wait for a lock.
CREATE TABLE IF NOT EXISTS {schema}.processes (
  lock_id text COLLATE "C" NOT NULL,
  process text COLLATE "C" NOT NULL,
  live_until_ms bigint NOT NULL,
  -- live, suspended: passed over until it polls; owed: it polled since, and is granted the next time in any case
  state text NOT NULL DEFAULT 'live',
  -- It can't be sent messages.
  polls boolean NOT NULL,
  PRIMARY KEY (lock_id, process)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

-- What releases answered, for as long as it is to be remembered.
CREATE TABLE IF NOT EXISTS {schema}.tombstones (
  lock_id text COLLATE "C" NOT NULL,
  hold_id text COLLATE "C" NOT NULL,
  status text NOT NULL,
  until_ms bigint NOT NULL,
  PRIMARY KEY (lock_id, hold_id)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
CREATE INDEX IF NOT EXISTS tombstones_until ON {schema}.tombstones (until_ms);

-- Who waits for what: by these, deadlocks are found.
CREATE TABLE IF NOT EXISTS {schema}.edges (
  owner text COLLATE "C" NOT NULL,
  hold_id text COLLATE "C" NOT NULL,
  edge text NOT NULL,
  until_ms bigint NOT NULL,
  PRIMARY KEY (owner, hold_id)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
CREATE INDEX IF NOT EXISTS edges_until ON {schema}.edges (until_ms);
`;
