/**
 * The queue of a lock, and how it gets to its waiters. `caller` is the calling process; its grants are in the reply. What else is
 * said in `holds.ts` of `l`, holds here, too.
 */
export const queue = `
-- Marks the process of a waiter as live. Every new waiter calls this, so the time is written with a tenth to spare, and
-- written again only when that is used up.
CREATE OR REPLACE FUNCTION {schema}.keep_live(
  l {schema}.locks, name text, liveness_ms bigint, only_polls boolean, now_ms bigint
) RETURNS {schema}.locks LANGUAGE plpgsql AS $$
DECLARE p {schema}.processes; until_ms bigint := now_ms + liveness_ms * 11 / 10;
BEGIN
  SELECT * INTO p FROM processes WHERE lock_id = l.id AND process = name;
  IF NOT FOUND THEN
    INSERT INTO processes (lock_id, process, live_until_ms, polls) VALUES (l.id, name, until_ms, only_polls);
  ELSIF p.state = 'suspended' OR p.polls <> only_polls OR p.live_until_ms < now_ms + liveness_ms THEN
    UPDATE processes SET
      live_until_ms = greatest(live_until_ms, until_ms),
      state = CASE state WHEN 'live' THEN 'live' ELSE 'owed' END,
      polls = only_polls
    WHERE lock_id = l.id AND process = name;
  END IF;
  l.gone_ms := greatest(l.gone_ms, gone_after(until_ms));
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

-- Makes a waiter the holder, with a claim.
CREATE OR REPLACE FUNCTION {schema}.grant_claim(l {schema}.locks, w {schema}.waiters, family bigint, now_us bigint)
RETURNS {schema}.locks LANGUAGE plpgsql AS $$
BEGIN
  RETURN with_hold(
    without_waiter(l, w.owner, w.hold_id), w.owner, w.hold_id, w.process, w.mode, w.permits, now_us / 1000 + w.claim_ms,
    true, family, now_us, 0, NULL
  );
END $$;

-- Grants claims to the waiters of an owner that was just granted, and of its descendants, as far as the holds admit them: of
-- very many to the first ones. The others advance ahead of all waiters that are not nested as deep. Returns the hold ids,
-- and whether any has advanced.
CREATE OR REPLACE FUNCTION {schema}.hand_off_within(
  INOUT l {schema}.locks, the_owner text, now_us bigint, OUT taken text[], OUT has_advanced boolean
) LANGUAGE plpgsql AS $$
DECLARE w {schema}.waiters; family bigint; is_left boolean := false;
BEGIN
  taken := '{}';
  has_advanced := false;
  IF l.waiters = 0 THEN RETURN; END IF;
  FOR w IN
    SELECT * FROM waiters
    WHERE lock_id = l.id AND owner >= the_owner AND owner < the_owner || '0' AND is_ancestor(the_owner, owner)
    ORDER BY place, nr LIMIT 4096
  LOOP
    family := family_of(l, w.owner);
    IF admits(l, w.owner, family, limit_of(w.mode, w.permits)) THEN
      l := grant_claim(l, w, family, now_us);
      taken := taken || w.hold_id;
    ELSE
      is_left := true;
    END IF;
  END LOOP;
  IF is_left THEN
    UPDATE waiters SET front = depth_over(l, owner)
    WHERE lock_id = l.id AND owner >= the_owner AND owner < the_owner || '0' AND is_ancestor(the_owner, owner)
      AND front < depth_over(l, owner);
    has_advanced := FOUND;
  END IF;
END $$;

-- Whether it is the turn of a process that waits: of the calling one, of one that is owed a turn, and of one that can be
-- reached. Suspends one that can't.
CREATE OR REPLACE FUNCTION {schema}.has_turn(p {schema}.processes, caller text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF p.process = caller OR p.state = 'owed' THEN RETURN true; END IF;
  IF p.state = 'suspended' THEN RETURN false; END IF;
  IF p.polls OR is_listening(p.process) THEN RETURN true; END IF;
  UPDATE processes SET state = 'suspended' WHERE lock_id = p.lock_id AND process = p.process;
  RETURN false;
END $$;

-- Grants claims to the first live waiter, if the holds admit it, and to those within its owner; after one that shares the lock,
-- goes on until one that the holds do not admit. Notifies other processes. One call
-- looks at a limited number of waiters and grants a limited number of claims; then it notifies the process of the next waiter.
-- Returns the hold ids, the notifications, and whether a live waiter is left: null if the call did not look at all waiters and
-- found none.
CREATE OR REPLACE FUNCTION {schema}.hand_off(
  INOUT l {schema}.locks, caller text, now_us bigint, OUT taken text[], OUT told jsonb, OUT is_blocked boolean
) LANGUAGE plpgsql AS $$
DECLARE
  -- A cursor is planned for its first rows: in the order of the index, without a sort of the whole queue.
  in_order CURSOR FOR
    SELECT waiter, its_process FROM waiters waiter
    LEFT JOIN processes its_process ON its_process.lock_id = waiter.lock_id AND its_process.process = waiter.process
    WHERE waiter.lock_id = l.id ORDER BY waiter.place, waiter.nr;
  w {schema}.waiters; p {schema}.processes; family bigint; within record; seen integer := 0; next_process text;
  passed text[] := '{}'; reached text[] := '{}'; paid text[] := '{}';
BEGIN
  taken := '{}';
  told := '[]';
  is_blocked := false;
  IF l.waiters = 0 THEN RETURN; END IF;
  IF l.least_limit = 1 THEN
    -- A holder with the limit 1 admits only its descendants, which are in front.
    is_blocked := (SELECT front = 0 FROM waiters WHERE lock_id = l.id ORDER BY place, nr LIMIT 1);
    IF is_blocked THEN RETURN; END IF;
  END IF;
  <<from_first>>
  LOOP
    FOR x IN in_order LOOP
      EXIT from_first WHEN seen = 4096;
      seen := seen + 1;
      w := x.waiter;
      p := x.its_process;
      CONTINUE WHEN w.hold_id = ANY (taken) OR w.process = ANY (passed);
      IF p.live_until_ms IS NULL OR p.live_until_ms <= now_us / 1000 THEN
        l := without_waiter(l, w.owner, w.hold_id);
        CONTINUE;
      ELSIF NOT w.process = ANY (reached) THEN
        IF NOT has_turn(p, caller) THEN
          passed := passed || w.process;
          CONTINUE;
        END IF;
        reached := reached || w.process;
      END IF;
      is_blocked := true;
      family := family_of(l, w.owner);
      EXIT from_first WHEN NOT admits(l, w.owner, family, limit_of(w.mode, w.permits));
      IF cardinality(taken) >= 256 THEN
        next_process := w.process;
        EXIT from_first;
      END IF;
      IF p.state = 'owed' THEN paid := paid || w.process; END IF;
      l := grant_claim(l, w, family, now_us);
      within := hand_off_within(l, w.owner, now_us);
      l := within.l;
      taken := taken || w.hold_id || within.taken;
      EXIT from_first WHEN limit_of(w.mode, w.permits) = 1;
      is_blocked := false;
      CONTINUE from_first WHEN within.has_advanced;
    END LOOP;
    EXIT;
  END LOOP;
  IF seen = 4096 AND NOT is_blocked THEN is_blocked := NULL; END IF;
  IF cardinality(paid) > 0 THEN
    UPDATE processes SET state = 'live' WHERE lock_id = l.id AND process = ANY (paid);
  END IF;
  told := tell_grants(l, caller, taken);
  IF next_process IS NOT NULL THEN told := told || tell(next_process, 'next ' || w.hold_id); END IF;
END $$;

-- Notifies a process, which takes effect with the transaction. Returns the notification.
CREATE OR REPLACE FUNCTION {schema}.tell(the_process text, message text) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify(channel_of(the_process), message);
  RETURN jsonb_build_array(the_process, message);
END $$;

-- Notifies processes of their grants, except for the caller, with the last fence and the numbers of other holds. Returns the
-- notifications.
CREATE OR REPLACE FUNCTION {schema}.tell_grants(l {schema}.locks, caller text, taken text[]) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE h {schema}.holds; beside bigint[]; told jsonb := '[]';
BEGIN
  IF cardinality(taken) = 0 THEN RETURN told; END IF;
  FOR h IN
    SELECT * FROM holds WHERE lock_id = l.id AND hold_id = ANY (taken) AND process IS DISTINCT FROM caller ORDER BY nr
  LOOP
    beside := beside(l, h.owner, h.mode);
    told := told || tell(h.process, format('granted %s %s %s %s %s', h.hold_id, l.fence, h.ends_ms, beside[1], beside[2]));
  END LOOP;
  RETURN told;
END $$;

-- The claims of the calling process that a reply names, except for the hold that the reply is about: those that the call made,
-- and of a poll also the others, of very many those that lapse first.
CREATE OR REPLACE FUNCTION {schema}.claims_of(l {schema}.locks, caller text, but_hold text, is_poll boolean, taken text[])
RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
  IF l.claims = 0 OR NOT (is_poll OR cardinality(taken) > 0) THEN RETURN '[]'; END IF;
  RETURN (
    SELECT coalesce(jsonb_agg(jsonb_build_array(hold_id, l.fence, ends_ms) || to_jsonb(beside(l, owner, mode)) ORDER BY nr), '[]') FROM (
      SELECT hold_id, owner, mode, ends_ms, nr FROM holds
      WHERE lock_id = l.id AND is_claim AND process = caller AND hold_id <> but_hold AND (is_poll OR hold_id = ANY (taken))
      ORDER BY hold_id = ANY (taken) DESC, ends_ms, nr LIMIT 64 + cardinality(taken)
    ) AS named
  );
END $$;
`;
