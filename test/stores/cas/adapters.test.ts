import { describeCasServers } from '../../support/stores/cas-servers.ts';

const ttlMs = 60_000;

describeCasServers('The four operations', (newAdapter) => {
  it('`read` returns the text, if there is one, and the time in microseconds', async () => {
    const adapter = newAdapter();
    const before = await adapter.read('k');
    expect(before).toEqual({ value: undefined, nowUs: expect.any(Number) });
    expect(Number.isSafeInteger(before.nowUs)).toBe(true);
    await adapter.create('k', 'ä "quoted" \\ {}', ttlMs);
    const after = await adapter.read('k');
    expect(after.value).toBe('ä "quoted" \\ {}');
    expect(after.nowUs).toBeGreaterThan(before.nowUs);
  });

  it('`create` writes if there is no record, and only then', async () => {
    const adapter = newAdapter();
    expect(await adapter.create('k', 'one', ttlMs)).toBe(true);
    expect(await adapter.create('k', 'two', ttlMs)).toBe(false);
    expect((await adapter.read('k')).value).toBe('one');
  });

  it('`replace` replaces the record that it names, and no other', async () => {
    const adapter = newAdapter();
    expect(await adapter.replace('k', 'one', 'two', ttlMs)).toBe(false);
    expect((await adapter.read('k')).value).toBeUndefined();
    await adapter.create('k', 'one', ttlMs);
    expect(await adapter.replace('k', 'One', 'two', ttlMs)).toBe(false);
    expect(await adapter.replace('k', 'one', 'two', ttlMs)).toBe(true);
    expect(await adapter.replace('k', 'one', 'three', ttlMs)).toBe(false);
    expect((await adapter.read('k')).value).toBe('two');
  });

  it('`remove` removes the record that it names, and no other', async () => {
    const adapter = newAdapter();
    expect(await adapter.remove('k', 'one')).toBe(false);
    await adapter.create('k', 'one', ttlMs);
    expect(await adapter.remove('k', 'two')).toBe(false);
    expect((await adapter.read('k')).value).toBe('one');
    expect(await adapter.remove('k', 'one')).toBe(true);
    expect((await adapter.read('k')).value).toBeUndefined();
  });

  it('Of many simultaneous writes, one replaces and one creates', async () => {
    const adapters = Array.from({ length: 5 }, () => newAdapter());
    const created = await Promise.all(adapters.map((adapter, i) => adapter.create('k', `${i}`, ttlMs)));
    expect(created.filter(Boolean)).toHaveLength(1);
    const old = `${created.indexOf(true)}`;
    // More than one from each, so that connections are shared.
    const writes = adapters.flatMap((adapter, i) =>
      [1, 2, 3].map((n) => adapter.replace('k', old, `${i}:${n}`, ttlMs)),
    );
    expect((await Promise.all(writes)).filter(Boolean)).toHaveLength(1);
  });
});
