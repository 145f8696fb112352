/**
 * The rules about holds. `l` is the row of the lock. The operation has locked it, and writes it at the end. A function that
 * changes the lock returns the changed row.
 */
export const holds = `
-- The server's time. The store uses no other clock.
CREATE OR REPLACE FUNCTION {schema}.now_us() RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
$$;

-- When a row may be removed whose contents expire at until_ms: an hour later, rounded up to ten minutes.
CREATE OR REPLACE FUNCTION {schema}.gone_after(until_ms bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT (until_ms / 600000 + 7) * 600000
$$;

-- How many owners may hold a key together with such a hold, its own included: 1 for a writer, any number for readers.
CREATE OR REPLACE FUNCTION {schema}.limit_of(mode text, permits integer) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN mode = 'write' THEN 1 ELSE coalesce(permits, 2147483647) END
$$;

-- Whether one owner is an ancestor of another, or the same.
CREATE OR REPLACE FUNCTION {schema}.is_ancestor(ancestor text, owner text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT starts_with(owner || '/', ancestor || '/')
$$;

-- An owner and its ancestors, the root first.
CREATE OR REPLACE FUNCTION {schema}.ancestors_of(the_owner text) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE parts text[] := string_to_array(the_owner, '/'); ancestors text[] := parts[1:1];
BEGIN
  FOR depth IN 2 .. cardinality(parts) LOOP
    ancestors := ancestors || (ancestors[depth - 1] || '/' || parts[depth]);
  END LOOP;
  RETURN ancestors;
END $$;

-- How many holds an owner and its ancestors have.
CREATE OR REPLACE FUNCTION {schema}.family_of(l {schema}.locks, the_owner text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  IF l.holds = 0 THEN RETURN 0; END IF;
  RETURN (SELECT count(*) FROM holds WHERE lock_id = l.id AND owner = ANY (ancestors_of(the_owner)));
END $$;

-- How many other holds the family of a hold has, and how many of these its owner has, of which a reader counts no readers.
CREATE OR REPLACE FUNCTION {schema}.beside(l {schema}.locks, the_owner text, the_mode text) RETURNS bigint[] LANGUAGE plpgsql AS $$
BEGIN
  IF l.holds = 1 THEN RETURN '{0,0}'; END IF;
  RETURN (
    SELECT ARRAY[
      count(*) - 1,
      count(*) FILTER (WHERE owner = the_owner AND (mode <> 'read' OR the_mode <> 'read')) - (the_mode <> 'read')::integer
    ]
    FROM holds WHERE lock_id = l.id AND owner = ANY (ancestors_of(the_owner))
  );
END $$;

-- How deep the deepest holder is that is an ancestor of an owner, or is itself; 0 if there is none.
CREATE OR REPLACE FUNCTION {schema}.depth_over(l {schema}.locks, the_owner text) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
  IF l.holds = 0 THEN RETURN 0; END IF;
  RETURN (
    SELECT coalesce(max(cardinality(string_to_array(owner, '/'))), 0)
    FROM holds WHERE lock_id = l.id AND owner = ANY (ancestors_of(the_owner))
  );
END $$;

-- How many owners hold that are no ancestors of this one, nor of another holder. The descendants of an owner lie between it and
-- itself with a 0 behind, the character after the slash.
CREATE OR REPLACE FUNCTION {schema}.branches_beside(l {schema}.locks, the_owner text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  RETURN (
    SELECT count(DISTINCT h.owner) FROM holds h
    WHERE h.lock_id = l.id AND NOT is_ancestor(h.owner, the_owner) AND NOT EXISTS (
      SELECT FROM holds d
      WHERE d.lock_id = l.id AND d.owner > h.owner AND d.owner < h.owner || '0' AND is_ancestor(h.owner, d.owner)
    )
  );
END $$;

-- Whether one more may come of an owner whose family has so many holds. Those never exclude it. Of the others, each branch
-- counts as one owner together with its ancestors: there may be as many owners as the least limit says.
CREATE OR REPLACE FUNCTION {schema}.admits(l {schema}.locks, the_owner text, family bigint, its_limit integer) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE outside bigint := l.holds - family; most integer := least(l.least_limit, its_limit);
BEGIN
  RETURN outside = 0 OR outside < most OR (most > 1 AND branches_beside(l, the_owner) < most);
END $$;

-- Adds a hold that the present holds admit. A reader shares the last fence, and so does an owner whose family holds with no
-- greater limit: no other owner ever wrote under the fence of a writer. Otherwise the fence rises. One that is inherited
-- (old_fence) was there before.
CREATE OR REPLACE FUNCTION {schema}.with_hold(
  l {schema}.locks, the_owner text, the_hold text, the_process text, the_mode text, the_permits integer, the_end_ms bigint,
  as_claim boolean, family bigint, now_us bigint, min_fence bigint, old_fence bigint
) RETURNS {schema}.locks LANGUAGE plpgsql AS $$
DECLARE its_limit integer := limit_of(the_mode, the_permits);
BEGIN
  IF old_fence IS NULL AND (
    l.holds = 0 OR (the_mode <> 'read' AND (family = 0 OR l.least_limit > its_limit OR (its_limit > 1 AND NOT EXISTS (
      SELECT FROM holds WHERE lock_id = l.id AND owner = ANY (ancestors_of(the_owner)) AND limit_of(mode, permits) <= its_limit
    ))))
  ) THEN
    l.fence := greatest(l.fence + 1, now_us, min_fence);
  END IF;
  INSERT INTO holds (lock_id, owner, hold_id, process, mode, permits, ends_ms, is_claim, fence) VALUES
    (l.id, the_owner, the_hold, the_process, the_mode, the_permits, the_end_ms, as_claim, coalesce(old_fence, l.fence));
  l.holds := l.holds + 1;
  IF as_claim THEN l.claims := l.claims + 1; END IF;
  l.least_limit := least(l.least_limit, its_limit);
  l.earliest_ms := least(l.earliest_ms, the_end_ms);
  l.gone_ms := greatest(l.gone_ms, gone_after(greatest(the_end_ms, l.fence / 1000 + 1)));
  RETURN l;
END $$;

-- Counts all holds anew.
CREATE OR REPLACE FUNCTION {schema}.counted(l {schema}.locks) RETURNS {schema}.locks LANGUAGE plpgsql AS $$
BEGIN
  SELECT count(*), count(*) FILTER (WHERE is_claim), coalesce(min(limit_of(mode, permits)), 2147483647), min(ends_ms)
    INTO l.holds, l.claims, l.least_limit, l.earliest_ms FROM holds WHERE lock_id = l.id;
  RETURN l;
END $$;

-- Counts a hold that was removed. The others of a key mostly have its limit.
CREATE OR REPLACE FUNCTION {schema}.without_hold(l {schema}.locks, its_limit integer, was_claim boolean)
RETURNS {schema}.locks LANGUAGE plpgsql AS $$
BEGIN
  l.holds := l.holds - 1;
  IF was_claim THEN l.claims := l.claims - 1; END IF;
  IF l.holds = 0 THEN
    l.least_limit := 2147483647;
    l.earliest_ms := NULL;
  ELSIF its_limit = l.least_limit AND its_limit < 2147483647 THEN
    PERFORM FROM holds WHERE lock_id = l.id AND limit_of(mode, permits) = its_limit LIMIT 1;
    IF NOT FOUND THEN RETURN counted(l); END IF;
  END IF;
  RETURN l;
END $$;

-- Removes the holds whose leases have expired. A process that let a claim lapse is suspended: it is skipped until it polls.
CREATE OR REPLACE FUNCTION {schema}.expire(l {schema}.locks, now_ms bigint) RETURNS {schema}.locks LANGUAGE plpgsql AS $$
DECLARE late text[];
BEGIN
  WITH ended AS (DELETE FROM holds WHERE lock_id = l.id AND ends_ms <= now_ms RETURNING process, is_claim)
  SELECT array_agg(process) FILTER (WHERE is_claim) INTO late FROM ended;
  IF late IS NOT NULL AND l.waiters > 0 THEN
    UPDATE processes SET state = 'suspended' WHERE lock_id = l.id AND process = ANY (late) AND state <> 'suspended';
  END IF;
  RETURN counted(l);
END $$;
`;
