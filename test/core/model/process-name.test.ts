import { hostname } from 'node:os';
import { createLocks, LockConfigError, MemoryStore } from '../../../src/core/index.ts';
import { defaultInstance, instanceOf, processName } from '../../../src/core/model/process-name.ts';

const randomId = '0123456789abcdef0123456789abcdef';

describe('The name of a process', () => {
  it('A process’s name contains its instance, and all of its random bits', () => {
    const name = processName('orders-7d9f:1', randomId);
    expect(instanceOf(name)).toBe('orders-7d9f:1');
    expect(Buffer.from(name.slice(name.lastIndexOf('~') + 1), 'base64url').toString('hex')).toBe(randomId);
  });

  it('A process’s name yields no instance if another store or version made it', () => {
    expect([randomId, '~abc', ''].map(instanceOf)).toEqual([undefined, undefined, undefined]);
  });

  it('The default instance is the host and the process id', async () => {
    expect(defaultInstance()).toMatch(new RegExp(`:${process.pid}$`));
    expect(defaultInstance()).toContain(
      hostname()
        .replace(/[^\w.-]/g, '-')
        .slice(0, 20),
    );
    const locks = createLocks({ store: new MemoryStore() });
    expect(locks.settings.instance).toBe(defaultInstance());
    await locks.close();
  });

  it.each(['', ' ', ':1', '-a', '~', 'a~b', 'a b', 'a{b}', 'a\n', 'ä', 'x'.repeat(65), 7])(
    'A name is refused with a LockConfigError if the `instance` is %p',
    (instance) => {
      expect(() => createLocks({ store: new MemoryStore(), instance: instance as string })).toThrow(LockConfigError);
    },
  );

  it.each(['a', 'orders-1', 'pod.ns:8080/x@y_z', 'x'.repeat(64)])('The `instance` %p is accepted', async (instance) => {
    const locks = createLocks({ store: new MemoryStore(), instance });
    expect(locks.settings.instance).toBe(instance);
    await locks.close();
  });
});
