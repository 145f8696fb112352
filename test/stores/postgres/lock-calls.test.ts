import { LockCalls, type Operation } from '../../../src/stores/postgres/lock-calls.ts';
import { PostgresStatements } from '../../../src/stores/postgres/statements.ts';
import { longMs } from '../../../src/testing/contract/harness.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { FakePool, type Sent } from '../../support/postgres/fake-pool.ts';
import { usePostgres } from '../../support/postgres/stage.ts';
import { outcomeOf } from '../../support/stores/set-up.ts';

describe('Calls on locks', () => {
  let clock: ManualClock;
  let pool: FakePool;
  let calls: LockCalls;
  const onSent = jest.fn();
  beforeEach(() => {
    clock = new ManualClock();
    pool = new FakePool();
    onSent.mockClear();
    calls = new LockCalls(new PostgresStatements(pool, clock, 5_000), clock, 'reenlock', onSent);
  });

  const ask = (id: string, fence: number, op: Operation['op'] = 'renew') => outcomeOf(calls.run(id, { op, fence }));
  const fencesOf = ({ values }: Sent) =>
    (JSON.parse(String(values?.[2])) as { fence: number }[]).map(({ fence }) => fence);
  const answer = (sent: Sent) => sent.answer(JSON.stringify(fencesOf(sent).map((fence) => ['renewed', fence])));

  it('Calls of one lock go one statement at a time, and later calls go with the next statement, in order', async () => {
    const outcomes = [ask('a', 1)];
    await clock.settle();
    outcomes.push(...[2, 3, 4].map((fence) => ask('a', fence)));
    await clock.settle();
    expect(pool.sent.map(fencesOf)).toEqual([[1]]);
    answer(pool.sent[0]!);
    await clock.settle();
    expect(pool.sent.map(fencesOf)).toEqual([[1], [2, 3, 4]]);
    outcomes.push(ask('a', 5));
    answer(pool.sent[1]!);
    await clock.settle();
    answer(pool.sent[2]!);
    await Promise.all(outcomes.map(({ settled }) => settled));
    expect(outcomes.map(({ value }) => value)).toEqual([1, 2, 3, 4, 5].map((fence) => ['renewed', fence]));
    expect(pool.connections).toHaveLength(3);
    expect(onSent).toHaveBeenCalledTimes(3);
  });

  it('Calls of several locks go side by side', async () => {
    ask('a', 1);
    ask('b', 2);
    await clock.settle();
    expect(pool.sent.map(({ values }) => values?.[1])).toEqual(['a', 'b']);
  });

  it('Calls go together with those that arrived while there was no connection', async () => {
    pool.isOpen = false;
    ask('a', 1);
    await clock.settle();
    ask('a', 2);
    pool.waiting[0]!.lend();
    await clock.settle();
    expect(pool.sent.map(fencesOf)).toEqual([[1, 2]]);
  });

  it('At most 64 calls go in one statement', async () => {
    for (let fence = 0; fence < 150; fence++) ask('a', fence);
    for (let round = 0; round < 3; round++) {
      await clock.settle();
      answer(pool.sent[round]!);
    }
    await clock.settle();
    expect(pool.sent.map((sent) => fencesOf(sent).length)).toEqual([64, 64, 22]);
  });

  it('Calls fail together with their statement, and later ones are sent', async () => {
    const outcomes = [ask('a', 1)];
    await clock.settle();
    outcomes.push(ask('a', 2, 'release'), ask('a', 3), ask('a', 4));
    answer(pool.sent[0]!);
    await clock.settle();
    const last = ask('a', 5);
    pool.sent[1]!.fail(new Error('gone'));
    await clock.settle();
    expect(outcomes.map(({ state }) => state)).toEqual(['fulfilled', 'rejected', 'rejected', 'rejected']);
    expect(outcomes[1]!.error).toMatchObject({
      outcome: 'unknown',
      message: 'The lock store did not reply to release and renew',
    });
    answer(pool.sent[2]!);
    await last.settled;
    expect(last.state).toBe('fulfilled');
  });

  it('Calls that waited for a connection in vain were not applied, and do not delay later ones', async () => {
    pool.isOpen = false;
    const outcomes = [ask('a', 1), ask('a', 2)];
    await clock.advance(4_000);
    outcomes.push(ask('a', 3));
    await clock.advance(1_000);
    for (const { error } of outcomes) expect(error).toMatchObject({ outcome: 'not-applied' });
    pool.isOpen = true;
    const last = ask('a', 4);
    await clock.settle();
    expect(pool.sent.map(fencesOf)).toEqual([[4]]);
    answer(pool.sent[0]!);
    await last.settled;
  });

  it('Calls overtake a statement that has no reply after half a second, and a third one that has none', async () => {
    const outcomes = [ask('a', 1)];
    await clock.settle();
    outcomes.push(ask('a', 2));
    await clock.advance(499);
    expect(pool.sent.map(fencesOf)).toEqual([[1]]);
    await clock.advance(1);
    outcomes.push(ask('a', 3));
    await clock.settle();
    expect(pool.sent.map(fencesOf)).toEqual([[1], [2]]);
    await clock.advance(500);
    outcomes.push(ask('a', 4));
    await clock.advance(3_000);
    expect(pool.sent.map(fencesOf)).toEqual([[1], [2], [3]]);
    for (const sent of pool.sent.slice(0, 3)) answer(sent);
    await clock.settle();
    expect(pool.sent.map(fencesOf)).toEqual([[1], [2], [3], [4]]);
    answer(pool.sent[3]!);
    await Promise.all(outcomes.map(({ settled }) => settled));
    expect(outcomes.map(({ value }) => value)).toEqual([1, 2, 3, 4].map((fence) => ['renewed', fence]));
    expect(clock.timerCount).toBe(0);
  });

  it('Calls do not overtake a statement that waits for a connection', async () => {
    pool.isOpen = false;
    ask('a', 1);
    await clock.advance(2_000);
    ask('a', 2);
    await clock.settle();
    expect(pool.waiting).toHaveLength(1);
  });
});

describe('Calls on a server', () => {
  const stage = usePostgres();

  it('A lock that many callers of a process ask for at once uses one connection of the pool', async () => {
    const pool = stage.connect({ max: 10 });
    stage.store = stage.storeOf({ pool });
    const process = stage.deafProcess();
    await process.line().hold();
    const lines = Array.from({ length: 200 }, () => process.line());
    const replies = await Promise.all(lines.map((line) => line.ask({ maxWaiters: 1_000 })));
    expect(replies.map((reply) => 'position' in reply && reply.position)).toEqual(lines.map((_, position) => position));
    expect(pool.totalCount).toBe(1);
  });

  it('A release and the acquire after it run in their order, even if they are sent together', async () => {
    const process = stage.deafProcess();
    const [one, two] = [process.line(), process.line()];
    await one.hold();
    const replies = await Promise.all([one.renew(1), one.release(longMs), two.try(), one.try()]);
    expect(replies.map(({ status }) => status)).toEqual(['lost', 'released', 'granted', 'cancelled']);
  });
});
