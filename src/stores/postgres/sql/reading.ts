/** The functions that only read. Each sees one snapshot of the tables. */
export const reading = `
-- Refuses a caller that needs another format, and a session in which another borrower has set an encoding: names of locks
-- would become other names.
CREATE OR REPLACE FUNCTION {schema}.check_caller(known_format integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF known_format <> {format} THEN
    RAISE SQLSTATE 'RL001' USING MESSAGE = format('the schema has format {format}, the caller knows format %s', known_format);
  ELSIF pg_client_encoding() <> 'UTF8' THEN
    RAISE SQLSTATE 'RL003' USING MESSAGE = 'the client encoding must be UTF8';
  END IF;
END $$;

-- The holds whose leases last, with the fence of the lock; of very many the first ones.
CREATE OR REPLACE FUNCTION {schema}.first_holds(name text, now_ms bigint)
RETURNS TABLE (hold_id text, owner text, process text, fence bigint, ends_ms bigint, is_claim boolean, mode text, nr bigint)
LANGUAGE sql STABLE AS $$
  SELECT h.hold_id, h.owner, h.process, l.fence, h.ends_ms, h.is_claim, h.mode, h.nr
  FROM {schema}.holds h JOIN {schema}.locks l ON l.id = h.lock_id
  WHERE h.lock_id = name AND h.ends_ms > now_ms ORDER BY h.nr LIMIT 1000
$$;

-- inspect: return the holders and waiters of a lock.
-- Returns [now, [[hold id, owner, process, fence, end, is claim, mode], ...],
--   [[hold id, owner, process, mode, priority, since in microseconds], ...], permits or null]; the first 1,000 of each.
CREATE OR REPLACE FUNCTION {schema}.inspect(known_format integer, name text) RETURNS jsonb
LANGUAGE plpgsql STABLE {definer} AS $$
DECLARE now_ms bigint := now_us() / 1000;
BEGIN
  PERFORM check_caller(known_format);
  RETURN jsonb_build_array(now_ms, (
    SELECT coalesce(jsonb_agg(jsonb_build_array(hold_id, owner, process, fence, ends_ms, is_claim, mode) ORDER BY nr), '[]')
    FROM first_holds(name, now_ms)
  ), (
    SELECT coalesce(jsonb_agg(jsonb_build_array(hold_id, owner, process, mode, priority, since_us) ORDER BY place, nr), '[]')
    FROM (SELECT * FROM waiters WHERE lock_id = name ORDER BY place, nr LIMIT 1000) AS first
  ), (
    SELECT coalesce(
      (SELECT permits FROM holds WHERE lock_id = name AND ends_ms > now_ms AND permits IS NOT NULL ORDER BY nr LIMIT 1),
      (SELECT permits FROM waiters WHERE lock_id = name AND permits IS NOT NULL ORDER BY place, nr LIMIT 1)
    )
  ));
END $$;

-- list: return the locks whose names begin with a prefix, after a name, looking at a limited number.
-- Returns [the last name that was looked at, or null if there are no more, [[name, inspect], ...]]
CREATE OR REPLACE FUNCTION {schema}.list(known_format integer, prefix text, after text, most integer) RETURNS jsonb
LANGUAGE plpgsql STABLE {definer} AS $$
DECLARE names text[]; listed text[];
BEGIN
  PERFORM check_caller(known_format);
  names := ARRAY(SELECT id FROM locks WHERE id >= prefix AND id > after ORDER BY id LIMIT most);
  listed := ARRAY(SELECT name FROM unnest(names) AS name WHERE starts_with(name, prefix));
  RETURN jsonb_build_array(
    CASE WHEN cardinality(listed) = most THEN listed[most] END,
    (SELECT coalesce(jsonb_agg(jsonb_build_array(name, inspect(known_format, name))), '[]') FROM unnest(listed) AS name)
  );
END $$;

-- wait: return since when a hold id is queued, if it is, and the holders.
-- Returns [since in microseconds or null, [[hold id, owner, fence], ...]]; the first 1,000 holders.
CREATE OR REPLACE FUNCTION {schema}.wait(known_format integer, name text, the_owner text, the_hold text) RETURNS jsonb
LANGUAGE plpgsql STABLE {definer} AS $$
DECLARE now_ms bigint := now_us() / 1000;
BEGIN
  PERFORM check_caller(known_format);
  RETURN jsonb_build_array(
    (SELECT since_us FROM waiters WHERE lock_id = name AND owner = the_owner AND hold_id = the_hold),
    (SELECT coalesce(jsonb_agg(jsonb_build_array(hold_id, owner, fence) ORDER BY nr), '[]')
    FROM first_holds(name, now_ms))
  );
END $$;
`;
