/**
 * The operations on a lock. Operations that were sent together run in their order, in one transaction. Each is an object with
 * its name in `op`. Each reply is an array that begins with a status. All are safe to repeat with the same hold id.
 */
export const operations = `
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

-- What is left of a lock whose row alone was deleted: its holds and its waiters still count.
CREATE OR REPLACE FUNCTION {schema}.with_left(l {schema}.locks) RETURNS {schema}.locks LANGUAGE plpgsql AS $$
BEGIN
  l := counted(l);
  SELECT count(*) INTO l.waiters FROM waiters WHERE lock_id = l.id;
  IF l.holds > 0 THEN
    SELECT max(fence), greatest(l.gone_ms, gone_after(greatest(max(ends_ms), max(fence) / 1000 + 1)))
      INTO l.fence, l.gone_ms FROM holds WHERE lock_id = l.id;
  END IF;
  RETURN l;
END $$;

-- Remembers the release of a hold id.
CREATE OR REPLACE FUNCTION {schema}.bury(l {schema}.locks, the_hold text, the_status text, the_end_ms bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO tombstones VALUES (l.id, the_hold, the_status, the_end_ms)
    ON CONFLICT (lock_id, hold_id) DO UPDATE SET status = excluded.status, until_ms = excluded.until_ms;
END $$;

-- Whether the release of a hold id is remembered.
CREATE OR REPLACE FUNCTION {schema}.is_buried(l {schema}.locks, the_hold text, now_ms bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN EXISTS (SELECT FROM tombstones WHERE lock_id = l.id AND hold_id = the_hold AND until_ms > now_ms);
END $$;

-- acquire: grant the lock, queue the waiter, or repeat the result of an earlier call with this hold id. Also the poll.
-- Returns ['granted', now, claims, told, fence, end, is claim, other holds, those of its owner] | ['cancelled', now, claims, told]
--   | ['queued', now, claims, told, free at, ahead, is new, whether the newest is lost, server]
--   | ['refused' | 'full' | 'conflict', now, claims, told, free at, ahead]
CREATE OR REPLACE FUNCTION {schema}.acquire(INOUT l {schema}.locks, op jsonb, OUT reply jsonb) LANGUAGE plpgsql AS $$
DECLARE
  now_us bigint := now_us();
  now_ms bigint := now_us / 1000;
  the_owner text := op->>'owner'; the_hold text := op->>'hold'; caller text := op->>'process'; the_mode text := op->>'mode';
  the_permits integer := op->>'permits'; its_limit integer := limit_of(the_mode, the_permits); min_fence bigint := op->>'minFence';
  h {schema}.holds; own {schema}.waiters; family bigint := 0; is_poll boolean := false; enters boolean; done record;
  is_blocked boolean := false; taken text[] := '{}'; told jsonb := '[]'; claims jsonb := '[]'; answer text; rest jsonb;
BEGIN
  IF l.earliest_ms <= now_ms THEN l := expire(l, now_ms); END IF;
  IF is_buried(l, the_hold, now_ms) THEN
    reply := jsonb_build_array('cancelled', now_ms, claims, told);
    RETURN;
  END IF;
  IF l.holds > 0 THEN
    family := family_of(l, the_owner);
    IF family > 0 THEN
      SELECT * INTO h FROM holds WHERE lock_id = l.id AND owner = the_owner AND hold_id = the_hold;
      is_poll := FOUND;
    END IF;
  END IF;
  IF l.waiters > 0 THEN
    SELECT * INTO own FROM waiters WHERE lock_id = l.id AND owner = the_owner AND hold_id = the_hold;
    IF FOUND THEN
      is_poll := true;
      l := keep_live(l, caller, (op->>'livenessMs')::bigint, (op->>'polls')::boolean, now_ms);
    END IF;
    done := hand_off(l, caller, now_us);
    l := done.l;
    taken := done.taken;
    told := done.told;
    -- There may be a live waiter behind those that this call looked at. The caller may be that one, but not if it is new.
    is_blocked := coalesce(done.is_blocked, own.hold_id IS NULL);
    -- It may have been granted, or have advanced.
    IF cardinality(taken) > 0 THEN
      family := family_of(l, the_owner);
      SELECT * INTO h FROM holds WHERE lock_id = l.id AND owner = the_owner AND hold_id = the_hold;
      SELECT * INTO own FROM waiters WHERE lock_id = l.id AND owner = the_owner AND hold_id = the_hold;
    END IF;
  END IF;

  -- What is nested in a holder overtakes the queue.
  enters := h.hold_id IS NULL AND (family > 0 OR NOT is_blocked) AND (l.holds = 0 OR admits(l, the_owner, family, its_limit));
  IF h.hold_id IS NULL AND NOT enters THEN
    done := queue_or_refuse(l, op, own, family, now_us);
    l := done.l;
    answer := done.answer;
    rest := done.rest;
    -- A reader that is ahead of a waiting writer, by its priority, joins the readers: it has its turn.
    enters := done.is_first AND admits(l, the_owner, family, its_limit);
  END IF;
  IF enters THEN
    IF own.hold_id IS NOT NULL OR answer = 'queued' THEN l := without_waiter(l, the_owner, the_hold); END IF;
    h.hold_id := the_hold;
    h.ends_ms := now_ms + (op->>'leaseMs')::bigint;
    h.is_claim := false;
    l := with_hold(l, the_owner, the_hold, caller, the_mode, the_permits, h.ends_ms, false, family, now_us, min_fence, NULL);
    family := family + 1;
    IF l.waiters > 0 THEN
      done := hand_off_within(l, the_owner, now_us);
      l := done.l;
      taken := taken || done.taken;
      told := told || tell_grants(l, caller, done.taken);
      family := family_of(l, the_owner);
    END IF;
  ELSIF h.hold_id IS NOT NULL AND l.holds = 1 AND min_fence > l.fence THEN
    UPDATE holds SET fence = min_fence WHERE lock_id = l.id;
    l.fence := min_fence;
    l.gone_ms := greatest(l.gone_ms, gone_after(min_fence / 1000 + 1));
  END IF;
  IF h.hold_id IS NOT NULL THEN
    answer := 'granted';
    rest := jsonb_build_array(l.fence, h.ends_ms, h.is_claim)
      || CASE WHEN family > 1 THEN to_jsonb(beside(l, the_owner, the_mode)) ELSE '[0, 0]' END;
  END IF;
  IF l.claims > 0 THEN claims := claims_of(l, caller, the_hold, is_poll, taken); END IF;
  reply := jsonb_build_array(answer, now_ms, claims, told) || rest;
END $$;

-- What becomes of an acquire that is not granted: a waiter, or what it was before. One that waits for its own family is in
-- conflict: that reads alongside others, which may ask for the same. Returns whether a new waiter is the first.
CREATE OR REPLACE FUNCTION {schema}.queue_or_refuse(
  INOUT l {schema}.locks, op jsonb, own {schema}.waiters, family bigint, now_us bigint, OUT answer text, OUT rest jsonb,
  OUT is_first boolean
) LANGUAGE plpgsql AS $$
DECLARE
  is_new boolean := own.hold_id IS NULL; free_at bigint; ahead bigint; is_newest_lost boolean := false;
BEGIN
  answer := CASE
    WHEN is_new AND family > 0 AND limit_of(op->>'mode', (op->>'permits')::integer) < l.least_limit THEN 'conflict'
    WHEN NOT (op->>'queue')::boolean THEN 'refused'
    WHEN is_new AND l.waiters >= (op->>'maxWaiters')::bigint THEN 'full'
    ELSE 'queued'
  END;
  IF op ? 'newest' THEN
    PERFORM FROM waiters WHERE lock_id = l.id AND owner = op->'newest'->>'owner' AND hold_id = op->'newest'->>'hold';
    is_newest_lost := NOT FOUND;
  END IF;
  IF answer = 'queued' AND is_new THEN
    l := keep_live(l, op->>'process', (op->>'livenessMs')::bigint, (op->>'polls')::boolean, now_us / 1000);
    INSERT INTO waiters (lock_id, owner, hold_id, process, mode, permits, claim_ms, priority, since_us, front) VALUES (
      l.id, op->>'owner', op->>'hold', op->>'process', op->>'mode', (op->>'permits')::integer,
      (op->>'claimMs')::integer, (op->>'priority')::integer, now_us,
      CASE WHEN family > 0 THEN depth_over(l, op->>'owner') ELSE 0 END
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
  SELECT coalesce(max(ends_ms), now_us / 1000) INTO free_at FROM holds WHERE lock_id = l.id;
  rest := jsonb_build_array(free_at, ahead);
  IF answer = 'queued' THEN rest := rest || jsonb_build_array(is_new, is_newest_lost, {server}); END IF;
  is_first := answer = 'queued' AND is_new AND ahead = 0;
END $$;

-- renew: make the lease of a hold end later, and turn a claim into a lease.
-- Returns ['renewed', now, end] | ['lost']
CREATE OR REPLACE FUNCTION {schema}.renew(INOUT l {schema}.locks, op jsonb, OUT reply jsonb) LANGUAGE plpgsql AS $$
DECLARE now_ms bigint := now_us() / 1000; named bigint := op->>'fence'; until_ms bigint; h {schema}.holds;
BEGIN
  reply := '["lost"]';
  SELECT * INTO h FROM holds WHERE lock_id = l.id AND owner = op->>'owner' AND hold_id = op->>'hold';
  IF NOT FOUND OR h.ends_ms <= now_ms THEN RETURN; END IF;
  IF named < h.fence OR named > l.fence THEN RETURN; END IF;
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
  h {schema}.holds; done record; is_known boolean; answer text; before text; taken text[] := '{}'; told jsonb := '[]';
  claims jsonb := '[]';
BEGIN
  IF l.holds > 0 THEN
    IF l.earliest_ms <= now_ms THEN
      is_known := EXISTS (SELECT FROM holds WHERE lock_id = l.id AND owner = the_owner AND hold_id = the_hold);
      l := expire(l, now_ms);
    END IF;
    DELETE FROM holds WHERE lock_id = l.id AND owner = the_owner AND hold_id = the_hold RETURNING * INTO h;
    IF FOUND THEN
      l := without_hold(l, limit_of(h.mode, h.permits), h.is_claim);
      answer := 'released';
    ELSIF is_known THEN
      answer := 'expired';
    END IF;
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
    IF tombstone_ms > 0 THEN PERFORM bury(l, the_hold, answer, now_ms + tombstone_ms); END IF;
    IF l.waiters > 0 THEN
      done := hand_off(l, caller, now_us);
      l := done.l;
      taken := done.taken;
      told := done.told;
    END IF;
  END IF;
  IF (op->>'announce')::boolean AND answer <> 'absent' AND l.holds = 0 THEN
    told := told || jsonb_build_array('', 'freed ' || l.id);
    PERFORM pg_notify('reenlock:freed:{schema}', 'freed ' || l.id);
  END IF;
  l.gone_ms := greatest(l.gone_ms, gone_after(now_ms));
  IF cardinality(taken) > 0 THEN claims := claims_of(l, caller, the_hold, false, taken); END IF;
  reply := jsonb_build_array(answer, now_ms, claims, told);
END $$;

-- transfer: pass a hold on to another hold id, in one step.
-- Returns ['granted', now, claims, told, fence, end] | ['lost' | 'shared', now]
CREATE OR REPLACE FUNCTION {schema}.transfer(INOUT l {schema}.locks, op jsonb, OUT reply jsonb) LANGUAGE plpgsql AS $$
DECLARE
  now_us bigint := now_us();
  now_ms bigint := now_us / 1000;
  the_owner text := op->>'owner'; the_hold text := op->>'hold'; caller text := op->>'process';
  is_inherited boolean := is_ancestor(the_owner, op->>'fromOwner'); end_ms bigint := now_ms + (op->>'leaseMs')::bigint;
  h {schema}.holds; done record; told jsonb := '[]';
BEGIN
  IF l.earliest_ms <= now_ms THEN l := expire(l, now_ms); END IF;
  SELECT * INTO h FROM holds WHERE lock_id = l.id AND owner = the_owner AND hold_id = the_hold;
  IF FOUND THEN
    reply := jsonb_build_array('granted', now_ms, '[]'::jsonb, told, l.fence, h.ends_ms);
    RETURN;
  END IF;
  SELECT * INTO h FROM holds WHERE lock_id = l.id AND owner = op->>'fromOwner' AND hold_id = op->>'fromHold';
  IF NOT FOUND OR is_buried(l, the_hold, now_ms) THEN
    reply := jsonb_build_array('lost', now_ms);
    RETURN;
  ELSIF NOT is_inherited AND is_shared(l, h) THEN
    reply := jsonb_build_array('shared', now_ms);
    RETURN;
  END IF;
  DELETE FROM holds WHERE lock_id = l.id AND owner = h.owner AND hold_id = h.hold_id;
  l := without_hold(l, limit_of(h.mode, h.permits), h.is_claim);
  PERFORM bury(l, h.hold_id, 'released', now_ms + (op->>'tombstoneMs')::bigint);
  -- To an ancestor: nobody else had the key in between.
  IF is_inherited THEN end_ms := greatest(end_ms, h.ends_ms); END IF;
  l := with_hold(
    l, the_owner, the_hold, caller, op->>'mode', (op->>'permits')::integer, end_ms, false, family_of(l, the_owner), now_us, 0,
    CASE WHEN is_inherited THEN h.fence END
  );
  -- Of permits there may be one owner less now. The reply has no claims: the calling process is notified, too.
  done := hand_off(l, NULL, now_us);
  l := done.l;
  told := done.told;
  done := hand_off_within(l, the_owner, now_us);
  l := done.l;
  told := told || tell_grants(l, NULL, done.taken);
  reply := jsonb_build_array('granted', now_ms, '[]'::jsonb, told, l.fence, end_ms);
END $$;

-- Whether a hold can't pass to another owner: another hold of its branch stays, and the two might be one owner too many.
CREATE OR REPLACE FUNCTION {schema}.is_shared(l {schema}.locks, h {schema}.holds) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RETURN l.holds > 1 AND l.least_limit < 2147483647 AND (
    SELECT count(*) > 1 FROM holds
    WHERE lock_id = l.id AND (is_ancestor(owner, h.owner) OR is_ancestor(h.owner, owner))
  );
END $$;

-- force: take the lock from all holders with the given fence, hand it to the next waiter, and notify the holders.
-- Returns [whether it was taken, now, claims, told]
CREATE OR REPLACE FUNCTION {schema}.force(INOUT l {schema}.locks, op jsonb, OUT reply jsonb) LANGUAGE plpgsql AS $$
DECLARE now_us bigint := now_us(); done record; lost record; told jsonb := '[]';
BEGIN
  IF l.earliest_ms <= now_us / 1000 THEN l := expire(l, now_us / 1000); END IF;
  reply := jsonb_build_array(false, now_us / 1000, '[]'::jsonb, told);
  IF l.holds = 0 OR l.fence <> (op->>'fence')::bigint THEN RETURN; END IF;
  SELECT array_agg(process ORDER BY nr) AS processes, array_agg(hold_id ORDER BY nr) AS ids INTO lost
    FROM holds WHERE lock_id = l.id;
  DELETE FROM holds WHERE lock_id = l.id;
  done := hand_off(counted(l), NULL, now_us);
  l := done.l;
  told := done.told;
  FOR i IN 1 .. cardinality(lost.ids) LOOP
    told := told || tell(lost.processes[i], 'lost ' || lost.ids[i]);
  END LOOP;
  reply := jsonb_build_array(true, now_us / 1000, '[]'::jsonb, told);
END $$;

-- run: execute operations on one lock. Returns their replies.
CREATE OR REPLACE FUNCTION {schema}.run(known_format integer, lock_name text, ops jsonb) RETURNS jsonb
LANGUAGE plpgsql {definer} SET lock_timeout = '1500ms' AS $$
DECLARE l {schema}.locks; before {schema}.locks; op jsonb; done record; reply jsonb; replies jsonb := '[]';
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
  before := l;
  -- No fence yet: the row is new.
  IF l.fence = 0 THEN l := with_left(l); END IF;
  FOR i IN 0 .. jsonb_array_length(ops) - 1 LOOP
    op := ops->i;
    done := CASE op->>'op'
      WHEN 'acquire' THEN acquire(l, op)
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
    UPDATE locks SET fence = l.fence, holds = l.holds, claims = l.claims, least_limit = l.least_limit,
      earliest_ms = l.earliest_ms, waiters = l.waiters, gone_ms = l.gone_ms
    WHERE id = l.id;
  END IF;
  RETURN replies;
END $$;
`;
