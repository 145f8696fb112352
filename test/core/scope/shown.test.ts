import { inspect } from 'node:util';
import { currentTrace, lock } from '../../../src/core/index.ts';
import { coreTests, type Setup } from '../../support/stores/set-up.ts';

const setUp = coreTests();

/** All that a response, a view or a log would show of a value. */
function shownOf(value: object): string {
  return `${JSON.stringify(value)} ${inspect(value, { depth: 9, showHidden: false })} ${inspect({ ...value }, { depth: 9 })}`;
}

/** What must be in none of it: who has these may enter, or forge messages. */
async function secretsOf({ locks, store }: Setup, key: string): Promise<string[]> {
  const { holds } = await locks.inspect(key);
  const processes = store.calls.flatMap(({ operation, terms }) => (operation === 'subscribe' ? [String(terms)] : []));
  return [...holds.flatMap(({ holdId, traceId }) => [holdId, String(traceId)]), ...processes];
}

describe('What JSON, logs and copies show', () => {
  it('A hold shows its key, category, mode, fence and what is left, and neither its trace nor an id', async () => {
    const setup = setUp();
    const hold = await setup.job('secret-trace').in(() => lock.acquire('key', { category: 'orders' }));
    const seen = { key: 'key', category: 'orders', mode: 'write', fence: hold.fence, remainingMs: 9_898 };
    expect(JSON.parse(JSON.stringify(hold))).toEqual(seen);
    expect(inspect(hold)).toBe(`Hold ${inspect(seen)}`);
    expect(Object.keys(hold)).toEqual([]);
    expect(await setup.locks.inspect('key', { category: 'orders' })).toMatchObject({
      holds: [{ traceId: 'secret-trace', branch: '' }],
    });
    expect(shownOf(hold)).not.toContain('secret');
  });

  it('A batch shows the same of each of its holds', async () => {
    const setup = setUp();
    const batch = await setup.job('secret-trace').in(() => lock.acquireAll(['a', 'b']));
    expect(JSON.parse(JSON.stringify(batch))).toMatchObject({ key: 'a, b', holds: [{ key: 'a' }, { key: 'b' }] });
    const secrets = [...(await secretsOf(setup, 'a')), ...(await secretsOf(setup, 'b'))];
    expect(secrets.length).toBeGreaterThanOrEqual(5);
    for (const secret of secrets) expect(shownOf(batch)).not.toContain(secret);
  });

  it('A trace shows what it holds, and not its id', async () => {
    const setup = setUp();
    const { in: inJob } = setup.job('secret-trace');
    await inJob(() => lock.acquire('key'));
    const trace = inJob(() => currentTrace() as object);
    expect(JSON.parse(JSON.stringify(trace))).toMatchObject({ hasEnded: false, holds: [{ key: 'key' }] });
    expect(`${JSON.stringify({ trace })} ${inspect({ trace }, { depth: 9 })}`).not.toContain('secret');
    expect(Object.keys(trace)).not.toContain('runtime');
  });

  it('A `Locks` shows its options, without its store, its secrets and the name of its process', async () => {
    const setup = setUp({ trust: { secrets: ['a secret of more than 32 characters'], audience: 'orders' } });
    await setup.job().in(() => lock.acquire('key'));
    expect(JSON.parse(JSON.stringify(setup.locks))).toMatchObject({ leaseMs: 10_000, waitMs: 15_000 });
    for (const secret of await secretsOf(setup, 'key'))
      expect(inspect(setup.locks, { depth: 9 })).not.toContain(secret);
    expect(shownOf(setup.locks)).not.toContain('a secret');
    expect(Object.getOwnPropertySymbols({ ...setup.locks })).toEqual([]);
  });
});
