/**
 * The paths of most calls: the acquire of a key that nobody holds or waits for, and the release of its only hold. Each does what
 * its operation would do, in few statements. It returns its reply, or null: then it has changed nothing, and the operation must
 * do the work.
 */
export const quick = `
-- acquire, of a free key.
CREATE OR REPLACE FUNCTION {schema}.acquire_free(name text, op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE now_us bigint := now_us(); now_ms bigint := now_us / 1000; until_ms bigint := now_ms + (op->>'leaseMs')::bigint; reply jsonb;
BEGIN
  INSERT INTO holds (lock_id, owner, hold_id, process, mode, ends_ms, is_claim, is_raised)
    SELECT name, op->>'owner', op->>'hold', op->>'process', op->>'mode', until_ms, false, op->>'mode' = 'permit'
    WHERE NOT EXISTS (SELECT FROM tombstones AS t WHERE lock_id = name AND hold_id = op->>'hold' AND t.until_ms > now_ms);
  IF NOT FOUND THEN RETURN NULL; END IF;
  UPDATE locks AS l SET
    fence = greatest(l.fence + 1, now_us, (op->>'minFence')::bigint), holds = 1, writes = CASE op->>'mode' WHEN 'write' THEN 1 ELSE 0 END,
    writer = CASE op->>'mode' WHEN 'write' THEN op->>'owner' END, earliest_ms = until_ms, permits = (op->>'permits')::integer,
    gone_ms = greatest(l.gone_ms, gone_after(greatest(until_ms, (l.fence + 1) / 1000 + 1, (op->>'minFence')::bigint / 1000 + 1)))
  WHERE id = name
  RETURNING jsonb_build_array('granted', now_ms, '[]'::jsonb, '[]'::jsonb, l.fence, until_ms, false, 0) INTO reply;
  RETURN reply;
END $$;

-- release, of the only hold of a key that nobody waits for, if it is not to be announced.
CREATE OR REPLACE FUNCTION {schema}.release_last(name text, op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE now_ms bigint := now_us() / 1000; tombstone_ms bigint := op->>'tombstoneMs'; answer text;
BEGIN
  DELETE FROM holds
    WHERE lock_id = name AND owner = op->>'owner' AND hold_id = op->>'hold' AND (op->>'announce')::boolean IS NOT TRUE
    RETURNING CASE WHEN ends_ms > now_ms THEN 'released' ELSE 'expired' END INTO answer;
  IF NOT FOUND THEN RETURN NULL; END IF;
  IF tombstone_ms > 0 THEN
    INSERT INTO tombstones VALUES (name, op->>'hold', answer, now_ms + tombstone_ms)
      ON CONFLICT (lock_id, hold_id) DO UPDATE SET status = excluded.status, until_ms = excluded.until_ms;
  END IF;
  UPDATE locks SET
    holds = 0, writes = 0, writer = NULL, claims = 0, earliest_ms = NULL, gone_ms = greatest(gone_ms, gone_after(now_ms))
    WHERE id = name;
  RETURN jsonb_build_array(answer, now_ms, '[]'::jsonb, '[]'::jsonb);
END $$;
`;
