/**
 * The operations on a lock. Operations that were sent together run in their order, in one transaction. Each is an object with
 * its name in `op`. Each reply is an array that begins with a status. All are safe to repeat with the same hold id.
 */
export const operations = `
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

-- acquire: grant the lock, queue the waiter, or repeat the result of an earlier call with this hold id.
-- Returns ['granted', now, claims, told, fence, end, is claim, other holds] | ['cancelled', now, claims, told]
--   | ['queued', now, claims, told, free at, ahead, is new, whether the newest is lost]
--   | ['refused' | 'full' | 'conflict', now, claims, told, free at, ahead] | ['mismatch', now, claims, told, permits]
CREATE OR REPLACE FUNCTION {schema}.acquire(INOUT l {schema}.locks, op jsonb, OUT reply jsonb) LANGUAGE plpgsql AS $$
DECLARE
  now_us bigint := now_us();
  now_ms bigint := now_us / 1000;
  the_owner text := op->>'owner'; the_hold text := op->>'hold'; caller text := op->>'process'; the_mode text := op->>'mode';
  min_fence bigint := op->>'minFence'; wanted integer := op->>'permits';
  own {schema}.waiters; was_queued boolean := false;
  h {schema}.holds; own_holds bigint := 0; handed record; is_blocked boolean := false; told jsonb := '[]'; ahead bigint; free_at bigint;
  answer text; is_newest_lost boolean;
BEGIN
  IF l.earliest_ms <= now_ms THEN l := expire(l, now_ms); END IF;
  IF EXISTS (SELECT FROM tombstones WHERE lock_id = l.id AND hold_id = the_hold AND until_ms > now_ms) THEN
    reply := jsonb_build_array('cancelled', now_ms, claims_of(l, caller, the_hold), told);
    RETURN;
  END IF;
  IF l.waiters > 0 THEN
    SELECT * INTO own FROM waiters WHERE lock_id = l.id AND owner = the_owner AND hold_id = the_hold;
    was_queued := FOUND;
    IF was_queued THEN l := keep_live(l, caller, (op->>'livenessMs')::bigint, (op->>'polls')::boolean, now_ms); END IF;
    is_blocked := l.writes > 0;
    IF NOT is_blocked THEN
      handed := hand_on(l, caller, now_us);
      l := handed.l;
      -- A live waiter may stand behind those that this call looked at. The caller may be that one, but not if it is new.
      is_blocked := coalesce(handed.is_blocked, NOT was_queued);
      told := handed.told;
    END IF;
  END IF;

  IF l.holds + l.waiters = 0 THEN l.permits := wanted; END IF;
  IF l.permits IS DISTINCT FROM wanted THEN
    reply := jsonb_build_array('mismatch', now_ms, claims_of(l, caller, the_hold), told, l.permits);
    RETURN;
  END IF;

  IF l.holds > 0 THEN own_holds := holds_of(l, the_owner); END IF;
  IF own_holds > 0 THEN
    SELECT * INTO h FROM holds WHERE lock_id = l.id AND owner = the_owner AND hold_id = the_hold;
  END IF;
  IF h.hold_id IS NULL AND (own_holds > 0 OR NOT is_blocked) AND (l.holds = 0 OR admits(l, the_owner, the_mode)) THEN
    IF was_queued THEN l := without_waiter(l, the_owner, the_hold); END IF;
    h.ends_ms := now_ms + (op->>'leaseMs')::bigint;
    h.is_claim := false;
    h.hold_id := the_hold;
    l := with_hold(l, the_owner, the_hold, caller, the_mode, h.ends_ms, false, now_us, min_fence);
    own_holds := own_holds + 1;
  END IF;
  IF h.hold_id IS NOT NULL THEN
    IF l.holds = 1 AND min_fence > l.fence THEN
      l.fence := min_fence;
      l.gone_ms := greatest(l.gone_ms, gone_after(min_fence / 1000 + 1));
    END IF;
    reply := jsonb_build_array(
      'granted', now_ms, claims_of(l, caller, the_hold), told, l.fence, h.ends_ms, h.is_claim, own_holds - 1
    );
    RETURN;
  END IF;

  -- The owner reads beside others and asks to write: it would wait for its own hold, and for others that do the same.
  answer := CASE
    WHEN NOT was_queued AND own_holds > 0 THEN 'conflict'
    WHEN NOT (op->>'queue')::boolean THEN 'refused'
    WHEN NOT was_queued AND l.waiters >= (op->>'maxWaiters')::bigint THEN 'full'
    ELSE 'queued'
  END;
  IF answer = 'queued' AND NOT was_queued THEN
    l := keep_live(l, caller, (op->>'livenessMs')::bigint, (op->>'polls')::boolean, now_ms);
    INSERT INTO waiters (lock_id, owner, hold_id, process, mode, claim_ms, priority, since_us, place) VALUES (
      l.id, the_owner, the_hold, caller, the_mode, (op->>'claimMs')::integer, (op->>'priority')::integer,
      now_us, now_us - (op->>'priority')::bigint * 10000000
    ) RETURNING * INTO own;
    l.waiters := l.waiters + 1;
  END IF;
  IF own.hold_id IS NULL THEN
    ahead := l.waiters;
  ELSIF EXISTS (SELECT FROM waiters WHERE lock_id = l.id AND (place, nr) > (own.place, own.nr)) THEN
    SELECT count(*) INTO ahead FROM waiters WHERE lock_id = l.id AND (place, nr) < (own.place, own.nr);
  ELSE
    ahead := l.waiters - 1;
  END IF;
  SELECT coalesce(max(ends_ms), now_ms) INTO free_at FROM holds WHERE lock_id = l.id;
  reply := jsonb_build_array(answer, now_ms, claims_of(l, caller, the_hold), told, free_at, ahead);
  IF answer = 'queued' THEN
    is_newest_lost := op ? 'newest' AND NOT EXISTS (
      SELECT FROM waiters WHERE lock_id = l.id AND owner = op->'newest'->>'owner' AND hold_id = op->'newest'->>'hold'
    );
    reply := reply || jsonb_build_array(NOT was_queued, is_newest_lost);
  END IF;
END $$;

-- renew: make the lease of a hold end later, and turn a claim into a lease.
-- Returns ['renewed', now, end] | ['lost']
CREATE OR REPLACE FUNCTION {schema}.renew(INOUT l {schema}.locks, op jsonb, OUT reply jsonb) LANGUAGE plpgsql AS $$
DECLARE now_ms bigint := now_us() / 1000; fence bigint := op->>'fence'; until_ms bigint; h {schema}.holds;
BEGIN
  reply := '["lost"]';
  SELECT * INTO h FROM holds WHERE lock_id = l.id AND owner = op->>'owner' AND hold_id = op->>'hold';
  IF NOT FOUND OR h.ends_ms <= now_ms THEN RETURN; END IF;
  IF fence <> l.fence AND NOT (h.is_raised AND fence < l.fence) THEN RETURN; END IF;
  until_ms := greatest(h.ends_ms, now_ms + (op->>'leaseMs')::bigint);
  UPDATE holds SET ends_ms = until_ms, is_claim = false WHERE lock_id = l.id AND owner = h.owner AND hold_id = h.hold_id;
  IF h.is_claim THEN l.claims := l.claims - 1; END IF;
  l.gone_ms := greatest(l.gone_ms, gone_after(until_ms));
  reply := jsonb_build_array('renewed', now_ms, until_ms);
END $$;

-- release: remove the hold or the queue entry of a hold id, and hand the lock to the next waiter.
-- Returns ['released' | 'expired' | 'cancelled' | 'absent', now, claims, told]
-- A repeat gets the first status, as long as that is remembered.
CREATE OR REPLACE FUNCTION {schema}.release(INOUT l {schema}.locks, op jsonb, OUT reply jsonb) LANGUAGE plpgsql AS $$
DECLARE
  now_us bigint := now_us();
  now_ms bigint := now_us / 1000;
  the_owner text := op->>'owner'; the_hold text := op->>'hold'; caller text := op->>'process';
  tombstone_ms bigint := op->>'tombstoneMs';
  h record; handed record; answer text; before text; told jsonb := '[]';
BEGIN
  IF l.holds > 0 THEN
    DELETE FROM holds WHERE lock_id = l.id AND owner = the_owner AND hold_id = the_hold
      RETURNING process, mode, is_claim, ends_ms INTO h;
    IF FOUND THEN
      l := without_hold(l, h.mode, h.is_claim);
      answer := CASE WHEN h.ends_ms > now_ms THEN 'released' ELSE 'expired' END;
      IF answer = 'expired' AND h.is_claim THEN PERFORM suspend(l, h.process); END IF;
    END IF;
    IF l.earliest_ms <= now_ms THEN l := expire(l, now_ms); END IF;
  END IF;
  IF answer IS NULL AND l.waiters > 0 THEN
    PERFORM FROM waiters WHERE lock_id = l.id AND owner = the_owner AND hold_id = the_hold;
    IF FOUND THEN
      l := without_waiter(l, the_owner, the_hold);
      answer := 'cancelled';
    END IF;
  END IF;
  IF answer IS NULL THEN
    SELECT status INTO before FROM tombstones WHERE lock_id = l.id AND hold_id = the_hold AND until_ms > now_ms;
  END IF;
  answer := coalesce(answer, before, 'absent');
  IF before IS NULL THEN
    IF tombstone_ms > 0 THEN
      INSERT INTO tombstones VALUES (l.id, the_hold, answer, now_ms + tombstone_ms)
        ON CONFLICT (lock_id, hold_id) DO UPDATE SET status = excluded.status, until_ms = excluded.until_ms;
    END IF;
    IF l.writes = 0 AND l.waiters > 0 THEN
      handed := hand_on(l, caller, now_us);
      l := handed.l;
      told := handed.told;
    END IF;
  END IF;
  IF (op->>'announce')::boolean AND answer <> 'absent' AND l.holds = 0 THEN
    told := told || jsonb_build_array('', 'freed ' || l.id);
    PERFORM pg_notify('reenlock:freed:{schema}', 'freed ' || l.id);
  END IF;
  l.gone_ms := greatest(l.gone_ms, gone_after(now_ms));
  reply := jsonb_build_array(answer, now_ms, claims_of(l, caller, the_hold), told);
END $$;

-- transfer: pass a hold on to another hold id, in one step.
-- Returns ['granted', now, claims, told, fence, end] | ['lost' | 'shared', now]
CREATE OR REPLACE FUNCTION {schema}.transfer(INOUT l {schema}.locks, op jsonb, OUT reply jsonb) LANGUAGE plpgsql AS $$
DECLARE
  now_us bigint := now_us();
  now_ms bigint := now_us / 1000;
  the_owner text := op->>'owner'; the_hold text := op->>'hold'; the_mode text := op->>'mode';
  from_owner text := op->>'fromOwner'; from_hold text := op->>'fromHold';
  h {schema}.holds; lease_end bigint := now_ms + (op->>'leaseMs')::bigint;
BEGIN
  IF l.earliest_ms <= now_ms THEN l := expire(l, now_ms); END IF;
  SELECT * INTO h FROM holds WHERE lock_id = l.id AND owner = the_owner AND hold_id = the_hold;
  IF FOUND THEN
    reply := jsonb_build_array('granted', now_ms, '[]'::jsonb, '[]'::jsonb, l.fence, h.ends_ms);
    RETURN;
  END IF;
  SELECT * INTO h FROM holds WHERE lock_id = l.id AND owner = from_owner AND hold_id = from_hold;
  IF NOT FOUND
    OR EXISTS (SELECT FROM tombstones WHERE lock_id = l.id AND hold_id = the_hold AND until_ms > now_ms)
  THEN
    reply := jsonb_build_array('lost', now_ms);
  ELSIF (the_mode = 'write' AND l.holds > 1) OR (the_mode = 'read' AND l.writes > 0)
    OR (the_mode = 'permit' AND holds_of(l, from_owner) > 1)
  THEN
    reply := jsonb_build_array('shared', now_ms);
  ELSE
    DELETE FROM holds WHERE lock_id = l.id AND owner = from_owner AND hold_id = from_hold;
    l := without_hold(l, h.mode, h.is_claim);
    INSERT INTO tombstones VALUES (l.id, from_hold, 'released', now_ms + (op->>'tombstoneMs')::bigint)
      ON CONFLICT (lock_id, hold_id) DO UPDATE SET status = excluded.status, until_ms = excluded.until_ms;
    l := with_hold(l, the_owner, the_hold, op->>'process', the_mode, lease_end, false, now_us, 0);
    reply := jsonb_build_array('granted', now_ms, '[]'::jsonb, '[]'::jsonb, l.fence, lease_end);
  END IF;
END $$;

-- force: take the lock from all holders with the given fence, hand it to the next waiter, and notify the holders.
-- Returns [whether it was taken, now, claims, told]
CREATE OR REPLACE FUNCTION {schema}.force(INOUT l {schema}.locks, op jsonb, OUT reply jsonb) LANGUAGE plpgsql AS $$
DECLARE now_us bigint := now_us(); h record; handed record; taken record; told jsonb := '[]';
BEGIN
  IF l.earliest_ms <= now_us / 1000 THEN l := expire(l, now_us / 1000); END IF;
  reply := jsonb_build_array(false, now_us / 1000, '[]'::jsonb, told);
  IF l.holds = 0 OR l.fence <> (op->>'fence')::bigint THEN RETURN; END IF;
  SELECT array_agg(process ORDER BY nr) AS processes, array_agg(hold_id ORDER BY nr) AS ids INTO taken
    FROM holds WHERE lock_id = l.id;
  FOR h IN DELETE FROM holds WHERE lock_id = l.id RETURNING mode, is_claim LOOP
    l := without_hold(l, h.mode, h.is_claim);
  END LOOP;
  handed := hand_on(l, NULL, now_us);
  l := handed.l;
  told := handed.told;
  FOR i IN 1 .. cardinality(taken.ids) LOOP
    told := told || jsonb_build_array(taken.processes[i], 'lost ' || taken.ids[i]);
    PERFORM pg_notify(channel_of(taken.processes[i]), 'lost ' || taken.ids[i]);
  END LOOP;
  reply := jsonb_build_array(true, now_us / 1000, '[]'::jsonb, told);
END $$;

-- run: execute operations on one lock. Returns their replies.
CREATE OR REPLACE FUNCTION {schema}.run(known_format integer, lock_name text, ops jsonb) RETURNS jsonb
LANGUAGE plpgsql {definer} SET lock_timeout = '1500ms' AS $$
DECLARE l {schema}.locks; before {schema}.locks; op jsonb := ops->0; done record; reply jsonb; replies jsonb := '[]';
BEGIN
  -- A stricter level would not see what was written while it waited for the row of the lock.
  IF known_format <> {format} OR current_setting('transaction_isolation') <> 'read committed'
    OR pg_client_encoding() <> 'UTF8'
  THEN
    PERFORM check_caller(known_format);
    RAISE SQLSTATE 'RL002' USING MESSAGE = 'the transaction must be read committed';
  END IF;
  SELECT * INTO l FROM locks WHERE id = lock_name FOR NO KEY UPDATE;
  IF NOT FOUND THEN l := open_lock(lock_name); END IF;
  IF l.waiters = 0 AND jsonb_array_length(ops) = 1 THEN
    reply := CASE
      WHEN l.holds = 0 AND op->>'op' IN ('acquire', 'acquirePermit') THEN acquire_free(lock_name, op)
      WHEN l.holds = 1 AND op->>'op' = 'release' THEN release_last(lock_name, op)
    END;
    IF reply IS NOT NULL THEN RETURN jsonb_build_array(reply); END IF;
  END IF;
  before := l;
  FOR op IN SELECT value FROM jsonb_array_elements(ops) LOOP
    done := CASE op->>'op'
      WHEN 'acquire' THEN acquire(l, op)
      WHEN 'acquirePermit' THEN acquire(l, op)
      WHEN 'release' THEN release(l, op)
      WHEN 'renew' THEN renew(l, op)
      WHEN 'transfer' THEN transfer(l, op)
      WHEN 'force' THEN force(l, op)
    END;
    IF done IS NULL THEN RAISE SQLSTATE 'RL001' USING MESSAGE = 'the schema does not know this operation'; END IF;
    l := done.l;
    replies := replies || jsonb_build_array(done.reply);
  END LOOP;
  IF l IS DISTINCT FROM before THEN
    UPDATE locks SET fence = l.fence, holds = l.holds, writes = l.writes, writer = l.writer, claims = l.claims,
      earliest_ms = l.earliest_ms, waiters = l.waiters, permits = l.permits, gone_ms = l.gone_ms
    WHERE id = l.id;
  END IF;
  RETURN replies;
END $$;
`;
