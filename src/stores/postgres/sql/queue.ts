/**
 * The functions that the operations share. `l` is the row of the lock. The operation has locked it, and writes it at the end.
 * A function that changes the lock returns the changed row. `caller` is the calling process; its grants are in the reply.
 */
export const queue = `
-- The server's time. The store uses no other clock.
CREATE OR REPLACE FUNCTION {schema}.now_us() RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
$$;

-- When a row may be removed whose contents expire at until_ms: an hour later, rounded up to ten minutes.
CREATE OR REPLACE FUNCTION {schema}.gone_after(until_ms bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT (until_ms / 600000 + 7) * 600000
$$;

-- Creates the row of a lock, unless another transaction does so at the same time, and locks it.
CREATE OR REPLACE FUNCTION {schema}.open_lock(name text) RETURNS {schema}.locks LANGUAGE plpgsql AS $$
DECLARE l {schema}.locks;
BEGIN
  LOOP
    INSERT INTO locks (id, gone_ms) VALUES (name, gone_after(now_us() / 1000)) ON CONFLICT DO NOTHING RETURNING * INTO l;
    IF FOUND THEN RETURN l; END IF;
    SELECT * INTO l FROM locks WHERE id = name FOR NO KEY UPDATE;
    IF FOUND THEN RETURN l; END IF;
  END LOOP;
END $$;

-- Counts a hold that was removed.
CREATE OR REPLACE FUNCTION {schema}.without_hold(l {schema}.locks, gone_mode text, was_claim boolean)
RETURNS {schema}.locks LANGUAGE plpgsql AS $$
BEGIN
  l.holds := l.holds - 1;
  IF was_claim THEN l.claims := l.claims - 1; END IF;
  IF gone_mode = 'write' THEN
    l.writes := l.writes - 1;
    IF l.writes = 0 THEN l.writer := NULL; END IF;
  END IF;
  IF l.holds = 0 THEN l.earliest_ms := NULL; END IF;
  RETURN l;
END $$;

-- Suspends a process that let a claim lapse: it is skipped until it polls.
CREATE OR REPLACE FUNCTION {schema}.suspend(l {schema}.locks, name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF l.waiters > 0 THEN
    UPDATE processes SET state = 'suspended' WHERE lock_id = l.id AND process = name AND state <> 'suspended';
  END IF;
END $$;

-- Removes the holds whose leases are over, if the earliest may be.
CREATE OR REPLACE FUNCTION {schema}.expire(l {schema}.locks, now_ms bigint) RETURNS {schema}.locks LANGUAGE plpgsql AS $$
DECLARE h record;
BEGIN
  FOR h IN DELETE FROM holds WHERE lock_id = l.id AND ends_ms <= now_ms RETURNING process, mode, is_claim LOOP
    l := without_hold(l, h.mode, h.is_claim);
    IF h.is_claim THEN PERFORM suspend(l, h.process); END IF;
  END LOOP;
  SELECT min(ends_ms) INTO l.earliest_ms FROM holds WHERE lock_id = l.id;
  RETURN l;
END $$;

-- How many holds an owner has.
CREATE OR REPLACE FUNCTION {schema}.holds_of(l {schema}.locks, name text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  IF l.holds = 0 THEN RETURN 0; END IF;
  RETURN (SELECT count(*) FROM holds WHERE lock_id = l.id AND owner = name);
END $$;

-- Whether the present holds admit one more of this owner and mode. Different owners share only as readers, and as far as there
-- are permits.
CREATE OR REPLACE FUNCTION {schema}.admits(l {schema}.locks, name text, wanted text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF l.holds = 0 THEN RETURN true; END IF;
  IF l.writer IS NOT NULL THEN RETURN l.writer = name; END IF;
  IF l.permits IS NOT NULL THEN
    IF l.holds < l.permits OR holds_of(l, name) > 0 THEN RETURN true; END IF;
    RETURN (SELECT count(DISTINCT owner) FROM holds WHERE lock_id = l.id) < l.permits;
  END IF;
  RETURN wanted = 'read' OR l.holds = holds_of(l, name);
END $$;

-- Adds a hold that the present holds admit. A writer's fence is one that no other owner had: it rises if there was no hold,
-- and if a writer joins readers. The readers keep the fence that they were told. It also rises if another owner gets a permit.
CREATE OR REPLACE FUNCTION {schema}.with_hold(
  l {schema}.locks, the_owner text, the_hold text, the_process text, the_mode text,
  until_ms bigint, as_claim boolean, now_us bigint, min_fence bigint
) RETURNS {schema}.locks LANGUAGE plpgsql AS $$
BEGIN
  IF l.holds = 0 OR (the_mode = 'write' AND l.writes = 0) OR (the_mode = 'permit' AND holds_of(l, the_owner) = 0) THEN
    l.fence := greatest(l.fence + 1, now_us, min_fence);
    IF l.holds > 0 AND the_mode = 'write' THEN UPDATE holds SET is_raised = true WHERE lock_id = l.id; END IF;
  END IF;
  INSERT INTO holds (lock_id, owner, hold_id, process, mode, ends_ms, is_claim, is_raised)
    VALUES (l.id, the_owner, the_hold, the_process, the_mode, until_ms, as_claim, the_mode = 'permit');
  l.holds := l.holds + 1;
  IF as_claim THEN l.claims := l.claims + 1; END IF;
  IF the_mode = 'write' THEN
    l.writes := l.writes + 1;
    l.writer := the_owner;
  END IF;
  l.earliest_ms := least(l.earliest_ms, until_ms);
  l.gone_ms := greatest(l.gone_ms, gone_after(greatest(until_ms, l.fence / 1000 + 1)));
  RETURN l;
END $$;

-- Removes a queue entry, which must exist. The last entry takes the rows of the processes with it.
CREATE OR REPLACE FUNCTION {schema}.without_waiter(l {schema}.locks, the_owner text, the_hold text)
RETURNS {schema}.locks LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM waiters WHERE lock_id = l.id AND owner = the_owner AND hold_id = the_hold;
  l.waiters := l.waiters - 1;
  IF l.waiters = 0 THEN DELETE FROM processes WHERE lock_id = l.id; END IF;
  RETURN l;
END $$;

-- The channel of a process: the random part of its name, behind the last tilde. A channel has 63 bytes at most.
CREATE OR REPLACE FUNCTION {schema}.channel_of(process text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT 'reenlock:' || substring(process FROM '[^~]*$')
$$;

-- Whether the connection is alive on which a process listens: it has a shared advisory lock as long as it lives. To find out,
-- this asks for that lock alone. Only one asks at a time: of two, the second would take the first for the connection. What was
-- taken is released at once, by the end of the block, so that it blocks nobody.
CREATE OR REPLACE FUNCTION {schema}.is_listening(name text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE is_free boolean;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('asks for ' || channel_of(name), 0));
  is_free := pg_try_advisory_xact_lock(hashtextextended(channel_of(name), 0));
  RAISE SQLSTATE 'RL000';
EXCEPTION WHEN SQLSTATE 'RL000' THEN
  RETURN NOT is_free;
END $$;

-- Grants claims to the next live waiter, if the holds admit it, and to every other waiter of its owner; after one that
-- shares the lock, goes on until one that the holds do not admit. Notifies other processes, which takes effect with the transaction. One call looks at a limited number
-- of waiters and grants a limited number of readers; then it notifies the process of the next one. Returns the notifications,
-- and whether a live waiter is left: null if the call did not look at all waiters and found none.
CREATE OR REPLACE FUNCTION {schema}.hand_on(INOUT l {schema}.locks, caller text, now_us bigint, OUT is_blocked boolean, OUT told jsonb)
LANGUAGE plpgsql AS $$
DECLARE
  -- A cursor is planned for its first rows: in the order of the index, without a sort of the whole queue.
  in_order CURSOR FOR
    SELECT x.owner, x.hold_id, x.mode, x.process, p.live_until_ms, p.state, p.polls
    FROM waiters x LEFT JOIN processes p ON p.lock_id = x.lock_id AND p.process = x.process
    WHERE x.lock_id = l.id ORDER BY x.place, x.nr;
  now_ms bigint := now_us / 1000;
  other record; seen integer := 0; next_process text; next_message text;
  passed text[] := '{}'; reached text[] := '{}'; paid text[] := '{}'; taken text[] := '{}';
BEGIN
  is_blocked := false;
  told := '[]';
  IF l.waiters = 0 THEN RETURN; END IF;
  FOR w IN in_order LOOP
    EXIT WHEN seen = 4096;
    seen := seen + 1;
    CONTINUE WHEN w.hold_id = ANY (taken);
    IF w.live_until_ms IS NULL OR w.live_until_ms <= now_ms THEN
      l := without_waiter(l, w.owner, w.hold_id);
      CONTINUE;
    END IF;
    IF w.process IS DISTINCT FROM caller AND w.state <> 'owed' THEN
      CONTINUE WHEN w.state = 'suspended' OR w.process = ANY (passed);
      IF NOT (w.polls OR w.process = ANY (reached)) THEN
        IF NOT is_listening(w.process) THEN
          UPDATE processes SET state = 'suspended' WHERE lock_id = l.id AND process = w.process;
          passed := passed || w.process;
          CONTINUE;
        END IF;
        reached := reached || w.process;
      END IF;
    END IF;
    is_blocked := true;
    EXIT WHEN NOT admits(l, w.owner, w.mode);
    IF cardinality(taken) >= 256 THEN
      next_process := w.process;
      next_message := 'next ' || w.hold_id;
      EXIT;
    END IF;
    IF w.state = 'owed' THEN paid := paid || w.process; END IF;
    FOR other IN
      SELECT * FROM waiters WHERE lock_id = l.id AND owner = w.owner ORDER BY hold_id <> w.hold_id, place, nr LIMIT 4096
    LOOP
      CONTINUE WHEN NOT admits(l, other.owner, other.mode);
      l := without_waiter(l, other.owner, other.hold_id);
      l := with_hold(l, other.owner, other.hold_id, other.process, other.mode, now_ms + other.claim_ms, true, now_us, 0);
      taken := taken || other.hold_id;
    END LOOP;
    EXIT WHEN w.mode = 'write';
    is_blocked := false;
  END LOOP;
  IF seen = 4096 AND NOT is_blocked THEN is_blocked := NULL; END IF;
  IF cardinality(paid) > 0 THEN
    UPDATE processes SET state = 'live' WHERE lock_id = l.id AND process = ANY (paid);
  END IF;
  IF cardinality(taken) > 0 THEN told := tell_grants(l, caller, taken); END IF;
  IF next_process IS NOT NULL THEN
    told := told || jsonb_build_array(next_process, next_message);
    PERFORM pg_notify(channel_of(next_process), next_message);
  END IF;
END $$;

-- Notifies processes of their grants, except for the caller, with the fence that all holds have now.
CREATE OR REPLACE FUNCTION {schema}.tell_grants(l {schema}.locks, caller text, taken text[]) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE h record; message text; told jsonb := '[]';
BEGIN
  FOR h IN
    SELECT process, hold_id, ends_ms FROM holds
    WHERE lock_id = l.id AND hold_id = ANY (taken) AND process IS DISTINCT FROM caller ORDER BY nr
  LOOP
    message := format('granted %s %s %s', h.hold_id, l.fence, h.ends_ms);
    told := told || jsonb_build_array(h.process, message);
    PERFORM pg_notify(channel_of(h.process), message);
  END LOOP;
  RETURN told;
END $$;

-- The claims of the calling process, except for the hold that the reply is about: the newest ones, which may be this call's,
-- and of the others those that lapse first.
CREATE OR REPLACE FUNCTION {schema}.claims_of(l {schema}.locks, caller text, but_hold text) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
  IF l.claims = 0 THEN RETURN '[]'; END IF;
  IF l.claims <= 64 THEN
    RETURN (
      SELECT coalesce(jsonb_agg(jsonb_build_array(hold_id, l.fence, ends_ms) ORDER BY nr), '[]') FROM holds
      WHERE lock_id = l.id AND is_claim AND process = caller AND hold_id <> but_hold
    );
  END IF;
  RETURN (
    WITH own AS (
      SELECT hold_id, ends_ms, nr FROM holds
      WHERE lock_id = l.id AND is_claim AND process = caller AND hold_id <> but_hold
    ), named AS (
      (SELECT * FROM own ORDER BY nr DESC LIMIT 256) UNION (SELECT * FROM own ORDER BY ends_ms, nr LIMIT 64)
    )
    SELECT coalesce(jsonb_agg(jsonb_build_array(hold_id, l.fence, ends_ms) ORDER BY nr), '[]') FROM named
  );
END $$;
`;
