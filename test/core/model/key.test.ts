import fc from 'fast-check';
import { LockKeyError } from '../../../src/core/index.ts';
import { lockName } from '../../../src/core/model/key.ts';

const idOf = (key: unknown, category?: string): string => lockName(key, category).id;

/** What a Redis hash tag, a script's arguments and a log line can carry. */
function expectSafe(id: string): void {
  expect(id).not.toBe('');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  expect(id).not.toMatch(/[\u0000-\u0020\u007f-\u009f{}]|\s/);
  expect(Buffer.byteLength(id)).toBeLessThanOrEqual(256);
  expect(Buffer.from(id).toString()).toBe(id);
}

describe('A key', () => {
  it.each([
    [42, 42n],
    [42, '42'],
    [-0, 0],
    [-0, '0'],
    [9007199254740993n, '9007199254740993'],
    [0.1, '0.1'],
  ])('A key is the same as %p, written %p', (a, b) => {
    expect(idOf(a)).toBe(idOf(b));
    expect(lockName(a).key).toBe(String(b));
  });

  it.each([
    ['a', 'A'],
    ['a', 'a '],
    ['a', ' a'],
    ['1', '1.0'],
    ['e\u0301', '\u00e9'],
    ['a%b', 'a%0025b'],
    ['a|b', 'a%007cb'],
    ['{a}', 'a'],
    ['{}', '}{'],
    ['}x', '{x'],
    ['a\u0000', 'a'],
    ['\ud800', '\ud801'],
    ['\ud800', '\ufffd'],
    ['\udc00', '\ufffd'],
    ['\ud800', '%d800'],
    ['*', '?'],
  ])('%j is another key than %j', (a, b) => {
    expect(idOf(a)).not.toBe(idOf(b));
  });

  it.each([
    '{}',
    '}x',
    '{x',
    'a{b}c',
    'a:b',
    'a|b',
    '|',
    '%',
    '*?[a-z]\\',
    '\u0000',
    'a\r\nSET b 1\r\n',
    '\u001b[31mred\u001b[0m',
    '\ud800',
    'a\udc00b',
    '\u{1f512}',
    'schlüssel',
    '__proto__',
    'constructor',
    'a b\tc',
    '\u0085',
    '\u00a0',
    '\u2028',
    '\u3000',
    '\ufeff',
    '\u202e',
    'x'.repeat(256),
    'ä'.repeat(200),
    '{'.repeat(100),
    'x'.repeat(4096),
  ])('%j is accepted as a key, kept as it was written, and safe inside', (key) => {
    expect(lockName(key).key).toBe(key);
    expectSafe(idOf(key));
    expectSafe(idOf(key, 'category'));
    expectSafe(idOf('key', key.slice(0, 256)));
  });

  it('A key is readable inside while it is 256 bytes or less, and hashed beyond', () => {
    expect(idOf('order:42')).toBe('order:42');
    expect(idOf('x'.repeat(256))).toBe('x'.repeat(256));
    expect(idOf('x'.repeat(257))).toMatch(/^%h[0-9a-f]{64}$/);
    expect(idOf('x'.repeat(257))).not.toBe(idOf('x'.repeat(258)));
  });

  it('An array where one key is expected is refused by a message that names what takes several', () => {
    expect(() => lockName(['a', 'b'])).toThrow(
      new LockKeyError(
        'Expected the lock key to be a string, number or bigint, got array; `acquireAll` and `runAll` take several',
      ),
    );
  });
});

describe('A category', () => {
  it.each([
    [
      ['a', 'b:c'],
      ['a:b', 'c'],
    ],
    [
      ['a', 'b|c'],
      ['a|b', 'c'],
    ],
    [
      ['a|', 'b'],
      ['a', '|b'],
    ],
    [
      ['a', 'b'],
      [undefined, 'a|b'],
    ],
    [
      ['a', 'b'],
      [undefined, 'a:b'],
    ],
    [
      ['a', 'b'],
      ['b', 'a'],
    ],
    [
      ['__proto__', 'a'],
      [undefined, 'a'],
    ],
    [
      ['a', 'b'],
      ['a%007c', 'b'],
    ],
    [
      ['a'.repeat(200), 'b'.repeat(200)],
      [undefined, `${'a'.repeat(200)}|${'b'.repeat(200)}`],
    ],
  ] as const)('A category keeps keys apart: %j from %j', ([categoryA, keyA], [categoryB, keyB]) => {
    expect(idOf(keyA, categoryA)).not.toBe(idOf(keyB, categoryB));
  });

  it('Two different pairs of category and key never share an id, and every id is safe', () => {
    const nasty = fc.constantFrom(
      '{',
      '}',
      '|',
      '%',
      ':',
      '*',
      ' ',
      '\n',
      '\u0000',
      '\ud800',
      '\udc00',
      '7c',
      'h',
      'a',
    );
    const text = fc.oneof(
      fc.string({ minLength: 1, maxLength: 12, unit: nasty }),
      fc.array(fc.nat(0xffff), { minLength: 1, maxLength: 400 }).map((units) => String.fromCharCode(...units)),
      fc.string({ minLength: 1, maxLength: 12 }),
    );
    const category = fc.option(text, { nil: undefined });
    fc.assert(
      fc.property(category, text, category, text, (categoryA, keyA, categoryB, keyB) => {
        const [a, b] = [idOf(keyA, categoryA), idOf(keyB, categoryB)];
        expectSafe(a);
        expectSafe(b);
        expect(a === b).toBe(categoryA === categoryB && keyA === keyB);
        // The same characters, cut elsewhere.
        if (categoryA !== undefined) {
          const joined = `${categoryA}${keyA}`;
          const cut = Math.max(1, joined.length - 1);
          const other = [joined.slice(0, cut), joined.slice(cut)] as const;
          if (other[1] !== '' && other[0] !== categoryA) expect(idOf(other[1], other[0])).not.toBe(a);
        }
      }),
      { numRuns: 500 },
    );
  });
});
