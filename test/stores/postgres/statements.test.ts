import { LockStoreError } from '../../../src/core/model/errors/failures.ts';
import { PostgresStatements, type Statement } from '../../../src/stores/postgres/statements.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { FakePool } from '../../support/postgres/fake-pool.ts';
import { usePostgres } from '../../support/postgres/stage.ts';
import { outcomeOf } from '../../support/stores/set-up.ts';
import { until } from '../../support/until.ts';

const timeoutMs = 5_000;
const statement: Statement = { operation: 'acquire', text: 'SELECT $1', values: () => [42] };

let clock: ManualClock;
let pool: FakePool;
let statements: PostgresStatements;
beforeEach(() => {
  clock = new ManualClock();
  pool = new FakePool();
  statements = new PostgresStatements(pool, clock, timeoutMs);
});

const ask = () => outcomeOf(statements.run(statement));
/** The statement that was sent last, once it was. */
const last = async () => {
  await clock.settle();
  return pool.sent.at(-1)!;
};

const failed = (code: string | undefined, message = 'of the server') => Object.assign(new Error(message), { code });

describe('a statement', () => {
  it('A statement is sent on a connection that is lent for it and returned with the reply', async () => {
    const outcome = ask();
    const sent = await last();
    expect(sent).toMatchObject({ text: 'SELECT $1', values: [42] });
    expect(sent.connection.released).toBeUndefined();
    sent.answer('yes');
    await outcome.settled;
    expect([outcome.value, sent.connection.released]).toEqual([['yes'], 'kept']);
    expect(pool.connections).toHaveLength(1);
    expect(sent.connection.listenerCount('error')).toBe(0);
    expect(clock.timerCount).toBe(0);
  });

  it('A statement that can get no connection was not applied and not sent', async () => {
    pool.isOpen = false;
    const outcome = ask();
    await clock.settle();
    const cause = failed('ECONNREFUSED');
    pool.waiting[0]!.fail(cause);
    await outcome.settled;
    expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'not-applied', cause });
    expect(clock.timerCount).toBe(0);
  });

  it('A statement is not sent if a pool throws instead of rejecting', async () => {
    pool.connect = () => {
      throw failed(undefined, 'no such pool');
    };
    const outcome = ask();
    await outcome.settled;
    expect(outcome.error).toMatchObject({ outcome: 'not-applied', cause: { message: 'no such pool' } });
  });

  it('A statement is given up if the pool has no connection in time, and a late connection is returned at once', async () => {
    pool.isOpen = false;
    const outcome = ask();
    await clock.advance(timeoutMs - 1);
    expect(outcome.state).toBe('pending');
    await clock.advance(1);
    expect(outcome.error).toMatchObject({ outcome: 'not-applied' });
    const late = pool.waiting[0]!.lend();
    await clock.settle();
    expect([late.released, pool.sent]).toEqual(['kept', []]);
  });

  it('A statement without a reply in time leaves the outcome unknown, and its connection is closed', async () => {
    const outcome = ask();
    const sent = await last();
    await clock.advance(timeoutMs);
    expect(outcome.error).toMatchObject({ outcome: 'unknown', message: 'The lock store did not reply to acquire' });
    expect(sent.connection.released).toBe('closed');
    sent.answer('late');
    await clock.settle();
    expect(clock.timerCount).toBe(0);
  });

  it.each([
    ['55P03', 'canceling statement due to lock timeout', 'not-applied', 'kept'],
    ['42P01', 'relation does not exist', 'not-applied', 'kept'],
    ['53100', 'disk full', 'not-applied', 'kept'],
    ['57014', 'canceling statement', 'not-applied', 'closed'],
    ['08006', 'connection failure', 'unknown', 'closed'],
    ['57P01', 'terminating connection', 'unknown', 'closed'],
    ['58030', 'could not write', 'unknown', 'closed'],
    ['XX000', 'internal error', 'unknown', 'closed'],
    ['40003', 'statement completion unknown', 'unknown', 'closed'],
    ['ECONNRESET', 'read ECONNRESET', 'unknown', 'closed'],
    ['EPIPE', 'write EPIPE', 'unknown', 'closed'],
    [undefined, 'Connection terminated unexpectedly', 'unknown', 'closed'],
  ])(
    'A statement that fails with %s (%s) is %s, and its connection is %s',
    async (code, message, expected, released) => {
      const outcome = ask();
      const cause = failed(code, message);
      (await last()).fail(cause);
      await outcome.settled;
      expect(outcome.error).toBeInstanceOf(LockStoreError);
      expect(outcome.error).toMatchObject({ outcome: expected, cause });
      expect(pool.connections.map((connection) => connection.released)).toEqual([released]);
    },
  );

  it('A statement with a character that the database lacks keeps its connection: the key is to blame', async () => {
    const outcome = ask();
    const cause = failed('22P05', 'untranslatable character');
    (await last()).fail(cause);
    await outcome.settled;
    expect(outcome.error).toMatchObject({
      code: 'ERR_LOCK_STORE',
      outcome: 'not-applied',
      cause: { code: 'ERR_LOCK_KEY', cause },
    });
    expect(pool.connections.map((connection) => connection.released)).toEqual(['kept']);
  });

  it.each([
    ['22021', 'invalid byte sequence for encoding'],
    ['25006', 'cannot execute in a read-only transaction'],
    ['25P02', 'current transaction is aborted'],
    ['42501', 'permission denied'],
  ])('A statement that fails with %s (%s) is sent on other connections, two at most', async (code, message) => {
    const first = ask();
    (await last()).fail(failed(code, message));
    (await last()).answer('yes');
    await first.settled;
    expect(first.value).toEqual(['yes']);
    expect(pool.connections.map(({ released }) => released)).toEqual(['closed', 'kept']);
    const second = ask();
    for (let times = 1; times <= 3; times++) (await last()).fail(failed(code, message));
    await second.settled;
    expect(second.error).toMatchObject({ outcome: 'not-applied', cause: { code } });
    expect(pool.connections).toHaveLength(5);
  });

  it.each([
    ['25006', 'connect the pool to the primary, and remove `default_transaction_read_only`'],
    ['42501', 'grant those that the guide of the store lists'],
  ])('An error %s on every connection says what to do: %s', async (code, advice) => {
    const outcome = ask();
    for (let times = 1; times <= 3; times++) (await last()).fail(failed(code, 'no'));
    await outcome.settled;
    expect(outcome.error).toMatchObject({ message: expect.stringContaining(advice) });
  });

  it('A statement is not sent on a connection that was left in a transaction: it is closed', async () => {
    pool.lendsIn = ['T', 'E'];
    const outcome = ask();
    (await last()).answer('yes');
    await outcome.settled;
    expect(outcome.value).toEqual(['yes']);
    expect(pool.sent).toHaveLength(1);
    expect(pool.connections.map(({ released }) => released)).toEqual(['closed', 'closed', 'kept']);
  });

  it('A statement that got into a transaction is repeated elsewhere, and its outcome is unknown after the third', async () => {
    const outcome = ask();
    for (const how of ['answer', 'fail', 'answer'] as const) {
      const sent = await last();
      sent.connection.transaction = 'T';
      sent[how](failed('25P02'));
    }
    await outcome.settled;
    const message = expect.stringContaining('an open transaction');
    expect(outcome.error).toMatchObject({ outcome: 'unknown', message });
    expect(pool.connections.map(({ released }) => released)).toEqual(['closed', 'closed', 'closed']);
  });

  it('A statement follows a question if pg does not report whether the connection is in a transaction', async () => {
    pool.lendsIn = [undefined, undefined];
    const outcome = ask();
    expect((await last()).text).toContain('COMMIT');
    (await last()).fail(failed('2D000', 'invalid transaction termination'));
    (await last()).answer('');
    (await last()).answer('yes');
    await outcome.settled;
    expect(outcome.value).toEqual(['yes']);
    expect(pool.connections.map(({ released }) => released)).toEqual(['closed', 'kept']);
  });

  it('A question that fails is the error, and the statement was not applied', async () => {
    pool.lendsIn = [undefined];
    const outcome = ask();
    (await last()).fail(failed('ECONNRESET'));
    await outcome.settled;
    expect(outcome.error).toMatchObject({ outcome: 'not-applied', cause: { code: 'ECONNRESET' } });
    expect(pool.connections.map(({ released }) => released)).toEqual(['closed']);
  });

  it('A question without a reply ends with the time for the statement', async () => {
    pool.lendsIn = [undefined];
    const outcome = ask();
    await last();
    await clock.advance(timeoutMs);
    expect(outcome.error).toMatchObject({ outcome: 'not-applied' });
    expect(pool.connections.map(({ released }) => released)).toEqual(['closed']);
    expect(clock.timerCount).toBe(0);
  });

  it('A statement survives the events of its connection while it is lent', async () => {
    const outcome = ask();
    const sent = await last();
    sent.connection.emit('error', failed('ECONNRESET'));
    sent.fail(failed('ECONNRESET'));
    await outcome.settled;
    expect(outcome.state).toBe('rejected');
  });

  it.each(['40001', '40P01'])(
    'A statement that conflicts with others (%s) is sent again, and not for ever',
    async (code) => {
      const first = ask();
      (await last()).fail(failed(code));
      await clock.advance(100);
      (await last()).answer('yes');
      await first.settled;
      expect(first.value).toEqual(['yes']);
      expect(pool.sent).toHaveLength(2);
      const second = ask();
      for (let attempt = 1; attempt <= 8; attempt++) {
        (await last()).fail(failed(code));
        await clock.advance(1_000);
      }
      expect(second.error).toMatchObject({ outcome: 'not-applied', cause: { code } });
      expect(pool.sent).toHaveLength(10);
      expect(clock.timerCount).toBe(0);
    },
  );

  it('A statement takes its values once, when it has a connection', async () => {
    pool.isOpen = false;
    const values = jest.fn(() => [1]);
    const outcome = outcomeOf(statements.run({ ...statement, values }));
    await clock.settle();
    expect(values).not.toHaveBeenCalled();
    pool.isOpen = true;
    pool.waiting[0]!.lend();
    await clock.settle();
    pool.sent[0]!.fail(failed('40001'));
    await clock.advance(100);
    pool.sent[1]!.answer('yes');
    await outcome.settled;
    expect(values).toHaveBeenCalledTimes(1);
  });

  it('A statement is sent in a transaction of the right isolation level if the pool’s is another, from then on', async () => {
    const [first, second] = [ask(), ask()];
    await clock.settle();
    for (const sent of pool.sent.slice(0, 2)) sent.fail(failed('RL002'));
    const answerAll = async (from: number): Promise<string[]> => {
      for (let at = from; ; at++) {
        await clock.settle();
        if (pool.sent.length <= at) return pool.sent.slice(from).map(({ text }) => text);
        pool.sent[at]!.answer('yes');
      }
    };
    const texts = await answerAll(2);
    const whole = ['DO $$ BEGIN COMMIT; END $$', 'BEGIN ISOLATION LEVEL READ COMMITTED', 'SELECT $1', 'COMMIT'];
    expect(texts.sort()).toEqual([...whole, ...whole].sort());
    await Promise.all([first.settled, second.settled]);
    expect([first.value, second.value]).toEqual([['yes'], ['yes']]);
    const before = pool.sent.length;
    ask();
    expect(await answerAll(before)).toEqual(whole);
  });

  it.each(['42501', 'RL002'])(
    'A statement that fails with %s within its transaction leaves none open: the connection is closed',
    async (code) => {
      const outcome = ask();
      (await last()).fail(failed('RL002'));
      for (let times = 1; times <= (code === 'RL002' ? 1 : 2); times++) {
        for (let before = 1; before <= 2; before++) (await last()).answer('');
        (await last()).fail(failed(code));
      }
      await outcome.settled;
      expect(outcome.error).toMatchObject({ outcome: 'not-applied' });
      expect(pool.connections.map(({ released }) => released).slice(0, 2)).toEqual(['kept', 'closed']);
    },
  );
});

describe('A statement on a server', () => {
  const stage = usePostgres();

  /** A renewal that waits for the row of its lock, which another transaction has, and what then happens to it. */
  async function blocked(happen: (pid: number) => Promise<unknown>): Promise<unknown> {
    const line = stage.deafProcess().line();
    const { fence } = await line.hold();
    const blocker = await stage.pool.connect();
    await blocker.query('BEGIN');
    await blocker.query('SELECT * FROM reenlock.locks FOR UPDATE');
    const outcome = line.renew(fence).catch((error: unknown) => error);
    const pid = await until(async () => {
      const waiting = `SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'`;
      return (await stage.pool.query<{ pid: number }>(waiting)).rows[0]?.pid;
    });
    await happen(pid as number);
    const settled = await outcome;
    await blocker.query('ROLLBACK');
    blocker.release();
    return settled;
  }

  it('A statement that the server cancelled was certainly not applied', async () => {
    const error = await blocked((pid) => stage.pool.query('SELECT pg_cancel_backend($1)', [pid]));
    expect(error).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'not-applied', cause: { code: '57014' } });
  });

  it('A connection that the server ended leaves the outcome unknown, and the pool drops it', async () => {
    const error = await blocked((pid) => stage.pool.query('SELECT pg_terminate_backend($1)', [pid]));
    expect(error).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
    const { rows } = await stage.pool.query('SELECT 1 AS one');
    expect(rows).toEqual([{ one: 1 }]);
  });

  it('A statement on a row that another session locks for long is given up on the server, too', async () => {
    const error = await blocked(async () => {});
    expect(error).toMatchObject({ outcome: 'not-applied', cause: { code: '55P03' } });
  });
});
