/**
 * The tables. Times that end in `_ms` or `_us` are on the server's clock, since 1970; fences are microseconds, too. Each
 * operation on a lock first locks the row in `locks`. Rows of other tables about the lock change only under that row lock. It
 * is written to the log of the server: so each reply waits for a synchronous standby, also one that repeats what it finds. A
 * former primary may find a grant that no other server has.
 */
export const tables = `
CREATE TABLE IF NOT EXISTS {schema}.locks (
  id text COLLATE "C" PRIMARY KEY,
  -- The last fence, which replies name for all holds. It stays after them, so that fences rise even if the clock is set back.
  fence bigint NOT NULL DEFAULT 0,
  -- How many holds there are, how many of them are claims, and the least limit of all.
  holds integer NOT NULL DEFAULT 0,
  claims integer NOT NULL DEFAULT 0,
  least_limit integer NOT NULL DEFAULT 2147483647,
  -- No lease ends before this.
  earliest_ms bigint,
  waiters integer NOT NULL DEFAULT 0,
  -- When the row is not needed any more. Rounded up to ten minutes, so that few updates change the index.
  gone_ms bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

CREATE TABLE IF NOT EXISTS {schema}.holds (
  lock_id text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  hold_id text COLLATE "C" NOT NULL,
  process text COLLATE "C" NOT NULL,
  mode text NOT NULL,
  permits integer,
  ends_ms bigint NOT NULL,
  -- Whether it was handed off and not renewed yet.
  is_claim boolean NOT NULL,
  -- The fence that it was granted with. The lock's fence may have risen since: it may be renewed with either.
  fence bigint NOT NULL,
  nr bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (lock_id, owner, hold_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

CREATE TABLE IF NOT EXISTS {schema}.waiters (
  lock_id text COLLATE "C" NOT NULL,
  owner text COLLATE "C" NOT NULL,
  hold_id text COLLATE "C" NOT NULL,
  process text COLLATE "C" NOT NULL,
  mode text NOT NULL,
  permits integer,
  claim_ms integer NOT NULL,
  priority integer NOT NULL,
  since_us bigint NOT NULL,
  -- 0, or the depth of the holder that it is nested in: it is ahead of all with a lower one. Otherwise a stranger ahead of it
  -- would wait for the holder, the holder for its nested call, and nobody would move.
  front integer NOT NULL,
  -- Its place in the queue: when it was queued, ten seconds earlier for each step of priority, and more than any time of
  -- waiting for each step of front.
  place bigint GENERATED ALWAYS AS (since_us - priority * 10000000::bigint - front * 1000000000000000::bigint) STORED,
  nr bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (lock_id, owner, hold_id)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

-- The processes that wait for a lock.
CREATE TABLE IF NOT EXISTS {schema}.processes (
  lock_id text COLLATE "C" NOT NULL,
  process text COLLATE "C" NOT NULL,
  live_until_ms bigint NOT NULL,
  -- live; suspended: skipped until it polls; owed: it has polled since, and must not be skipped at its next turn
  state text NOT NULL DEFAULT 'live',
  -- Whether it can't receive messages.
  polls boolean NOT NULL,
  PRIMARY KEY (lock_id, process)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

-- The statuses of releases, as long as they must be remembered.
CREATE TABLE IF NOT EXISTS {schema}.tombstones (
  lock_id text COLLATE "C" NOT NULL,
  hold_id text COLLATE "C" NOT NULL,
  status text NOT NULL,
  until_ms bigint NOT NULL,
  PRIMARY KEY (lock_id, hold_id)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

-- Which owner waits for which lock. The search for deadlocks reads these.
CREATE TABLE IF NOT EXISTS {schema}.edges (
  owner text COLLATE "C" NOT NULL,
  hold_id text COLLATE "C" NOT NULL,
  edge text NOT NULL,
  until_ms bigint NOT NULL,
  PRIMARY KEY (owner, hold_id)
) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

-- An index that is there already is not named: to look for it locks its table, against calls that are under way.
DO $$ BEGIN
  IF to_regclass('{schema}.locks_gone') IS NULL THEN CREATE INDEX locks_gone ON {schema}.locks (gone_ms); END IF;
  IF to_regclass('{schema}.waiters_in_order') IS NULL THEN CREATE INDEX waiters_in_order ON {schema}.waiters (lock_id, place, nr); END IF;
  IF to_regclass('{schema}.tombstones_until') IS NULL THEN CREATE INDEX tombstones_until ON {schema}.tombstones (until_ms); END IF;
  IF to_regclass('{schema}.edges_until') IS NULL THEN CREATE INDEX edges_until ON {schema}.edges (until_ms); END IF;
END $$;
`;
