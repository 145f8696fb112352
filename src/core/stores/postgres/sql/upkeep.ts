/** Edges, what takes old rows away, and which version this is. */
export const upkeep = `
-- set_edge: keep an edge, or remove it: then it is to count for no time.
CREATE OR REPLACE FUNCTION {schema}.set_edge(
  known_format integer, the_owner text, the_hold text, the_edge text, ttl_ms bigint
) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp SET lock_timeout = '4s' AS $$
BEGIN
  PERFORM check_format(known_format);
  IF ttl_ms = 0 THEN
    DELETE FROM edges WHERE owner = the_owner AND hold_id = the_hold;
  ELSE
    INSERT INTO edges VALUES (the_owner, the_hold, the_edge, now_us() / 1000 + ttl_ms)
      ON CONFLICT (owner, hold_id) DO UPDATE SET edge = excluded.edge, until_ms = excluded.until_ms;
  END IF;
  RETURN true;
END $$;

-- edges_of: tell the edges of an owner, those that count the longest, 64 at most.
CREATE OR REPLACE FUNCTION {schema}.edges_of(known_format integer, the_owner text) RETURNS SETOF text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
DECLARE now_ms bigint := now_us() / 1000;
BEGIN
  PERFORM check_format(known_format);
  RETURN QUERY SELECT edge FROM edges WHERE owner = the_owner AND until_ms > now_ms ORDER BY until_ms DESC LIMIT 64;
END $$;

-- sweep: remove what is over since a time in ms, so many rows of each kind at most. It waits for nobody.
-- Returns [until when all is removed, in ms, whether there is more].
CREATE OR REPLACE FUNCTION {schema}.sweep(known_format integer, from_ms bigint, most integer) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
DECLARE now_ms bigint := now_us() / 1000; old text[]; swept integer; is_full boolean;
BEGIN
  PERFORM check_format(known_format);
  -- The rows that were removed before are not looked at again, though they may still be on their pages.
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
  old := ARRAY(SELECT id FROM locks WHERE gone_ms >= from_ms AND gone_ms <= now_ms LIMIT most FOR UPDATE SKIP LOCKED);
  DELETE FROM holds WHERE lock_id = ANY (old);
  DELETE FROM waiters WHERE lock_id = ANY (old);
  DELETE FROM processes WHERE lock_id = ANY (old);
  DELETE FROM locks WHERE id = ANY (old);
  RETURN jsonb_build_array(now_ms, is_full OR cardinality(old) = most);
END $$;

-- version: tell the format and the revision of this schema.
CREATE OR REPLACE FUNCTION {schema}.version() RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT '[{format}, {revision}]'::jsonb
$$;
`;
