import { processState, warnOnce } from '../../../src/core/base/process-state.ts';
import { getLock, LockConfigError } from '../../../src/core/index.ts';
import { assertConstantKey } from '../../../src/core/model/key.ts';
import { coreTests } from '../../support/stores/set-up.ts';

const setUp = coreTests();

describe('A constant guard key', () => {
  const place = { expected: 'the key to be a function', instead: '(id) => id' };

  it.each([
    ':id',
    '/orders/:id',
    'orders/:id',
    '/:Id',
    ':_id',
    'order:${id}',
    '${id}',
    'order:${id',
    '{id}',
    'order:{id}',
    '/{orderId}',
    'a{}',
  ])('A constant guard key that looks like a template is refused: %s', (key) => {
    expect(() => assertConstantKey(key, place)).toThrow(LockConfigError);
    expect(() => assertConstantKey(key, place)).toThrow(/looks like a template/);
  });

  it.each(['order:42', 'a::b', 'reports', 'nightly-report', 'order:', '42', 'a:1:b', '50%', '$5', 'cron:daily', '}x'])(
    'A constant guard key that is none is accepted: %s',
    (key) => {
      expect(() => assertConstantKey(key, place)).not.toThrow();
    },
  );
});

describe('A key made from a missing value', () => {
  it.each([
    ['order:undefined', 'undefined'],
    ['undefined', 'undefined'],
    ['null:7', 'null', 'null:*'],
    ['user:7:ada@example.com:undefined', 'undefined', 'user:*:*.*:undefined'],
    ['ada@example.com:undefined', 'undefined', '*.*:undefined'],
    ['a/NaN', 'NaN'],
    ['order:[object Object]', '[object Object]'],
    ['undefined|a', 'undefined', 'undefined|*'],
    ['order:${id}', '${'],
    ['${order.id}', '${'],
    ['${:${id}', '${', '*:${id}'],
  ])(
    'A key made from a missing value warns once for all keys of its form, and names the part: %s',
    (key, part, form = key) => {
      setUp();
      processState().warned.clear();
      const warn = jest.spyOn(process, 'emitWarning').mockImplementation();
      getLock(key);
      expect(warn).toHaveBeenCalledWith(
        expect.stringContaining(`got \`${form}\`: the value for "${part}" was probably missing`),
        expect.objectContaining({ code: 'LOCK_KEY_SEGMENT' }),
      );
      getLock(key);
      getLock(key.replace('7', '8'));
      expect(warn).toHaveBeenCalledTimes(1);
      getLock('another:undefined');
      expect(warn).toHaveBeenCalledTimes(2);
      warn.mockRestore();
    },
  );

  it('Clients that choose keys can use up the warnings about keys, but of no other code', () => {
    setUp();
    processState().warned.clear();
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation();
    for (let n = 0; n < 2_000; n++) getLock(`k${n}:undefined`);
    const shown = warn.mock.calls.length;
    expect(shown).toBeLessThan(1_000);
    warnOnce('LOCK_LOST', 'The lock was lost');
    expect(warn).toHaveBeenCalledTimes(shown + 1);
    warn.mockRestore();
  });

  it.each(['undefinedness', 'nullable:1', 'order:42', 'x-null-y', 'NaNcy', 'a:undefined1', '$5', '${', 'a{b}'])(
    'A key that only resembles a missing value causes no warning: %s',
    (key) => {
      processState().warned.clear();
      const warn = jest.spyOn(process, 'emitWarning').mockImplementation();
      getLock(key);
      expect(warn).not.toHaveBeenCalled();
      warn.mockRestore();
    },
  );
});
