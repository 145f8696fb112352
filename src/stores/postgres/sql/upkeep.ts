/** The edges of waiters, the removal of expired rows, and the version of the schema. */
export const upkeep = `
-- set_edge: store an edge for ttl_ms, or remove it if that is 0.
CREATE OR REPLACE FUNCTION {schema}.set_edge(
  known_format integer, the_owner text, the_hold text, the_edge text, ttl_ms bigint
) RETURNS boolean LANGUAGE plpgsql {definer} SET lock_timeout = '1500ms' AS $$
BEGIN
  PERFORM check_caller(known_format);
  IF ttl_ms = 0 THEN
    DELETE FROM edges WHERE owner = the_owner AND hold_id = the_hold;
  ELSE
    INSERT INTO edges VALUES (the_owner, the_hold, the_edge, now_us() / 1000 + ttl_ms)
      ON CONFLICT (owner, hold_id) DO UPDATE SET edge = excluded.edge, until_ms = excluded.until_ms;
  END IF;
  RETURN true;
END $$;

-- edges_of: return the edges of an owner, 64 at most, those that last longest.
CREATE OR REPLACE FUNCTION {schema}.edges_of(known_format integer, the_owner text) RETURNS SETOF text
LANGUAGE plpgsql STABLE {definer} AS $$
DECLARE now_ms bigint := now_us() / 1000;
BEGIN
  PERFORM check_caller(known_format);
  RETURN QUERY SELECT edge FROM edges WHERE owner = the_owner AND until_ms > now_ms ORDER BY until_ms DESC LIMIT 64;
END $$;

-- sweep: remove rows that expired after a time in ms, a limited number of each kind. Skips rows that are locked. A lock is
-- removed keep_ms after the last of it expired; its row has the time an hour after that.
-- Returns [the time in ms up to which all is removed, whether there is more].
CREATE OR REPLACE FUNCTION {schema}.sweep(known_format integer, from_ms bigint, most integer, keep_ms bigint) RETURNS jsonb
LANGUAGE plpgsql {definer} AS $$
DECLARE
  now_ms bigint := now_us() / 1000; shift_ms bigint := 3600000 - keep_ms;
  old text[]; swept integer; is_full boolean;
BEGIN
  PERFORM check_caller(known_format);
  -- Without a lower bound, the scan would visit the dead rows of earlier sweeps again.
  DELETE FROM tombstones WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM tombstones WHERE until_ms >= from_ms AND until_ms <= now_ms LIMIT most FOR UPDATE SKIP LOCKED
  ));
  GET DIAGNOSTICS swept = ROW_COUNT;
  is_full := swept = most;
  DELETE FROM edges WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM edges WHERE until_ms >= from_ms AND until_ms <= now_ms LIMIT most FOR UPDATE SKIP LOCKED
  ));
  GET DIAGNOSTICS swept = ROW_COUNT;
  is_full := is_full OR swept = most;
  old := ARRAY(SELECT id FROM locks WHERE gone_ms >= from_ms + shift_ms AND gone_ms <= now_ms + shift_ms LIMIT most FOR UPDATE SKIP LOCKED);
  DELETE FROM holds WHERE lock_id = ANY (old);
  DELETE FROM waiters WHERE lock_id = ANY (old);
  DELETE FROM processes WHERE lock_id = ANY (old);
  DELETE FROM locks WHERE id = ANY (old);
  RETURN jsonb_build_array(now_ms, is_full OR cardinality(old) = most);
END $$;

-- version: return the format and the revision of this schema.
CREATE OR REPLACE FUNCTION {schema}.version() RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT '[{format}, {revision}]'::jsonb
$$;
`;
