import { inspect } from 'node:util';
import { createLocks, LockConfigError, type Locks, runInTrace, traceHeaders } from '../../../src/core/index.ts';
import { TraceSignatures } from '../../../src/core/model/signature.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';

watchLeaks();

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

  const secretsWords = 'a list of 1 to 4 different secrets, strings or bytes, each of 32 bytes or more';
  const audienceWords = '1 to 128 printable ASCII characters without spaces';
  const short = 'x'.repeat(31);
  it.each<[string, object, string]>([
    ['no secrets', { audience: 'shop' }, `\`secrets\` to be ${secretsWords}, got \`undefined\` (undefined)`],
    ['an empty list', { secrets: [] }, `\`secrets\` to be ${secretsWords}, got a list of 0`],
    [
      'a secret in place of the list',
      { secrets: newest },
      `\`secrets\` to be ${secretsWords}, got a value of type string`,
    ],
    ['a short secret', { secrets: [short] }, `\`secrets\` to be ${secretsWords}, got 31 bytes as number 1 of the list`],
    [
      'a short older secret',
      { secrets: [newest, short] },
      `\`secrets\` to be ${secretsWords}, got 31 bytes as number 2 of the list`,
    ],
    [
      'too few bytes',
      { secrets: [new Uint8Array(31)] },
      `\`secrets\` to be ${secretsWords}, got 31 bytes as number 1 of the list`,
    ],
    [
      'a secret twice',
      { secrets: [newest, Buffer.from(newest)] },
      `\`secrets\` to be ${secretsWords}, got one of the others as number 2 of the list`,
    ],
    [
      'a missing secret',
      { secrets: [newest, undefined] },
      `\`secrets\` to be ${secretsWords}, got a value of type undefined as number 2 of the list`,
    ],
    [
      'a number among them',
      { secrets: [newest, 5] },
      `\`secrets\` to be ${secretsWords}, got a value of type number as number 2 of the list`,
    ],
    [
      'five of them',
      { secrets: [1, 2, 3, 4, 5].map((n) => `${newest}-${n}`) },
      `\`secrets\` to be ${secretsWords}, got a list of 5`,
    ],
    [
      'no audience',
      { secrets: [newest], audience: undefined },
      `\`audience\` to be ${audienceWords}, got \`undefined\` (undefined)`,
    ],
    [
      'an empty audience',
      { secrets: [newest], audience: '' },
      `\`audience\` to be ${audienceWords}, got \`\` (string)`,
    ],
    [
      'an audience that is too long',
      { secrets: [newest], audience: 'x'.repeat(129) },
      `\`audience\` to be ${audienceWords}, got \`${'x'.repeat(100)}\` (string)`,
    ],
    [
      'an audience with a space',
      { secrets: [newest], audience: 'my shop' },
      `\`audience\` to be ${audienceWords}, got \`my shop\` (string)`,
    ],
    [
      'an audience of two lines',
      { secrets: [newest], audience: 'a\nb' },
      `\`audience\` to be ${audienceWords}, got \`a\nb\` (string)`,
    ],
    [
      'an audience that is a number',
      { secrets: [newest], audience: 7 },
      `\`audience\` to be ${audienceWords}, got \`7\` (number)`,
    ],
    [
      'a list of audiences',
      { secrets: [newest], audience: ['a'] },
      `\`audience\` to be ${audienceWords}, got a value of type array`,
    ],
    [
      'an option that does not exist',
      { secret: newest },
      'the options of `trust` to be among `secrets`, `audience`, got `secret`',
    ],
  ])('is refused, and no secret is shown: %s', (_, options, words) => {
    const trust = { audience: 'shop', ...options };
    expect(() => build(trust)).toThrow(new LockConfigError(`Expected ${words}`));
    expect(() => build(trust)).toThrow(LockConfigError);
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
