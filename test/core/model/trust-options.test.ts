import { inspect } from 'node:util';
import { createLocks, LockConfigError, type Locks, runInTrace, traceHeaders } from '../../../src/core/index.ts';
import { TraceSignatures } from '../../../src/core/model/signature.ts';

const older = 'an-older-secret-that-is-in-use-yet';
const newest = 'the-newest-secret-that-everybody-has';

describe('`trust` with secrets', () => {
  const created: Locks[] = [];
  afterEach(async () => {
    for (const locks of created.splice(0)) await locks.close();
  });
  const build = (trust: unknown): Locks => {
    const locks = createLocks({ trust } as never);
    created.push(locks);
    return locks;
  };

  const short = 'x'.repeat(31);
  it.each<[string, unknown, string]>([
    ['no secrets', undefined, '`undefined` (undefined)'],
    ['an empty list', [], 'a list of 0'],
    ['a secret in place of the list', newest, 'a value of type string'],
    ['a short secret', [short], '31 bytes as number 1 of the list'],
    ['a short older secret', [newest, short], '31 bytes as number 2 of the list'],
    ['too few bytes', [new Uint8Array(31)], '31 bytes as number 1 of the list'],
    ['a secret twice', [newest, Buffer.from(newest)], 'one of the others as number 2 of the list'],
    ['a missing secret', [newest, undefined], 'a value of type undefined as number 2 of the list'],
    ['a number among them', [newest, 5], 'a value of type number as number 2 of the list'],
    ['five of them', [1, 2, 3, 4, 5].map((n) => `${newest}-${n}`), 'a list of 5'],
  ])('`trust` refuses %s, and shows no secret', (_, secrets, got) => {
    expect(() => build({ audience: 'shop', secrets })).toThrow(
      new LockConfigError(
        `Expected \`secrets\` to be a list of 1 to 4 different secrets, strings or bytes, each of 32 bytes or more, got ${got}`,
      ),
    );
  });

  it.each<[string, unknown, string]>([
    ['no audience', undefined, '`undefined` (undefined)'],
    ['an empty audience', '', '`` (string)'],
    ['an audience that is too long', 'x'.repeat(129), `\`${'x'.repeat(100)}\` (string)`],
    ['an audience with a space', 'my shop', '`my shop` (string)'],
    ['an audience of two lines', 'a\nb', '`a\nb` (string)'],
    ['an audience that is a number', 7, '`7` (number)'],
    ['a list of audiences', ['a'], 'a value of type array'],
  ])('`trust` refuses %s', (_, audience, got) => {
    expect(() => build({ secrets: [newest], audience })).toThrow(
      new LockConfigError(`Expected \`audience\` to be 1 to 128 printable ASCII characters without spaces, got ${got}`),
    );
  });

  it('`trust` refuses an option that does not exist', () => {
    expect(() => build({ audience: 'shop', secret: newest })).toThrow(
      new LockConfigError('Expected the options of `trust` to be among `secrets`, `audience`, got `secret`'),
    );
  });

  it('`trust` does not show a secret that was given in the wrong place', () => {
    const error = refusal(() => build(newest));
    expect(error.message).toMatch(/^Expected `trust` to be 'internal', .*, got a value of type string$/);
    expect(inspect(error)).not.toContain(newest);
  });

  it('`trust` shows the audience alone when the settings are printed or written as JSON', () => {
    const locks = build({ secrets: [newest, Buffer.from(older)], audience: 'shop' });
    const printed = inspect(locks, { depth: 20, showHidden: true, getters: true });
    for (const secret of [newest, older]) expect(printed).not.toContain(secret);
    const shown = [
      inspect(locks.settings, { depth: 20, showHidden: true, getters: true }),
      JSON.stringify(locks.settings),
      JSON.stringify(Object.getOwnPropertyDescriptors(locks.settings.trust)),
    ];
    for (const text of shown) {
      expect(text).toContain('shop');
      for (const secret of [newest, older]) {
        for (const encoding of ['utf8', 'hex', 'base64', 'base64url'] as const)
          expect(text).not.toContain(Buffer.from(secret).toString(encoding));
        expect(text).not.toContain([...Buffer.from(secret)].join(','));
      }
    }
    expect(JSON.parse(JSON.stringify(locks.settings)).trust).toEqual({ audience: 'shop' });
    expect(Object.isFrozen(locks.settings.trust)).toBe(true);
  });

  it('`trust` may be copied from other settings', async () => {
    const first = build({ secrets: [newest], audience: 'shop' });
    const second = build(first.settings.trust);
    const signature = await runInTrace(traceHeaders, { locks: first, traceId: 'trace-1' });
    expect(second.settings.trust).toBe(first.settings.trust);
    const expected = new TraceSignatures({ secrets: [newest], audience: 'shop' });
    expect(expected.refusalOf('trace-1', signature['X-Trace-Signature'], Date.now())).toBeUndefined();
  });
});

function refusal(call: () => unknown): Error {
  try {
    call();
  } catch (error) {
    return error as Error;
  }
  throw new Error('Nothing was refused');
}
