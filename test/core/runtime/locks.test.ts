import { processState } from '../../../src/core/base/process-state.ts';
import {
  configureLocks,
  createLocks,
  getLock,
  LockConfigError,
  type Locks,
  LocksClosedError,
  lock,
  MemoryStore,
  runInTrace,
} from '../../../src/core/index.ts';
import { gate } from '../../support/gate.ts';

describe('The default Locks', () => {
  const { NODE_ENV } = process.env;
  const built: Locks[] = [];
  const keep = (locks: Locks): Locks => {
    built.push(locks);
    return locks;
  };
  afterEach(async () => {
    process.env.NODE_ENV = NODE_ENV;
    const { configured } = processState();
    for (const locks of [...built.splice(0), ...(configured === undefined ? [] : [configured as Locks])])
      await locks.close();
    processState().configured = undefined;
    jest.restoreAllMocks();
  });

  it('The default Locks is the one that was configured last', async () => {
    const [first, second] = [keep(configureLocks()), keep(configureLocks())];
    const granted: string[] = [];
    first.on('granted', () => void granted.push('first'));
    second.on('granted', () => void granted.push('second'));
    await runInTrace(() => lock.run('key', () => {}));
    expect(granted).toEqual(['second']);
  });

  it('The default Locks is not kept once another was configured, though nobody has closed it', () => {
    keep(createLocks());
    for (const _ of [1, 2, 3]) keep(configureLocks());
    keep(createLocks());
    expect(processState().created.size).toBe(0);
  });

  it('A Locks that was only created is no default: locking alongside an unused Redis is an error', async () => {
    keep(createLocks({ store: new MemoryStore() }));
    await expect(runInTrace(() => {})).rejects.toThrow(LockConfigError);
    await expect(getLock('key').inspect()).rejects.toThrow(
      /got only one that `createLocks` returned\. .* `\{ locks \}` to `traceContext` or `runInTrace`/,
    );
  });

  it('The default Locks is in memory again once those that were only created are closed', async () => {
    await createLocks().close();
    expect(await runInTrace(() => lock.run('key', () => 'value'))).toBe('value');
  });

  it('The methods of a Locks work when they are taken off it', async () => {
    const { on, list, close } = keep(configureLocks());
    const off = on('granted', () => {});
    expect((await list()).locks).toEqual([]);
    off();
    await close();
  });

  it('The default Locks is in memory if there is none, without a warning in tests', async () => {
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation();
    process.env.NODE_ENV = 'test';
    expect(await runInTrace(() => lock.run('key', () => 'value'))).toBe('value');
    expect(warn).not.toHaveBeenCalled();
  });

  it.each(['production', 'development', ''])(
    'The default Locks warns once that it excludes no other process: NODE_ENV=%s',
    async (env) => {
      processState().warned.clear();
      const warn = jest.spyOn(process, 'emitWarning').mockImplementation();
      process.env.NODE_ENV = env;
      for (let n = 0; n < 3; n++) await runInTrace(() => lock.run('key', () => {}));
      expect(warn).toHaveBeenCalledTimes(1);
      expect(warn).toHaveBeenCalledWith(
        expect.stringContaining('other processes are not excluded'),
        expect.objectContaining({ code: 'LOCK_MEMORY' }),
      );
    },
  );

  it('A configured Locks that is closed stays the default: what begins then is refused', async () => {
    const locks = configureLocks();
    const granted = new Promise((resolve) => locks.on('granted', resolve));
    const work = gate();
    const job = runInTrace(() => lock.run('key', () => work));
    await granted;

    const closed = locks.close();
    const late = () => runInTrace(() => lock.run('key', () => 'inside'));
    await expect(late()).rejects.toThrow(LocksClosedError);
    work.open();
    await Promise.all([job, closed]);
    await expect(late()).rejects.toThrow(LocksClosedError);
    keep(configureLocks());
    expect(await late()).toBe('inside');
  });

  it('A Locks excludes scopes that share it, and not those of another store', async () => {
    const store = new MemoryStore();
    const [a, b, other] = [keep(createLocks({ store })), keep(createLocks({ store })), keep(createLocks())];
    const isFree = (locks: Locks) =>
      runInTrace(async () => (await lock.tryAcquire('key')) !== null, { locks, traceId: 'another' });
    await runInTrace(
      async () => {
        await lock.acquire('key');
        expect([await isFree(a), await isFree(b), await isFree(other)]).toEqual([false, false, true]);
      },
      { locks: a },
    );
    expect(await isFree(b)).toBe(true);
  });
});
