import { createHmac } from 'node:crypto';
import { LockConfigError, type Locks, runInTrace, traceHeaders } from '../../../src/core/index.ts';
import { TraceSignatures } from '../../../src/core/model/signature.ts';
import { coreTests } from '../../support/stores/set-up.ts';

const setUp = coreTests();

const oldest = 'the-oldest-secret-that-is-in-use';
const older = 'an-older-secret-that-is-in-use-yet';
const newest = 'the-newest-secret-that-everybody-has';
const now = 1_700_000_000_000;
const of = (secrets: readonly (string | Uint8Array)[], audience = 'shop') => new TraceSignatures({ secrets, audience });
const ours = of([newest, older]);
const signed = ours.sign('trace-1', now);

describe('A signature', () => {
  it('A signature has one form that services on other platforms can write, too', () => {
    const digest = (text: string) => createHmac('sha256', newest).update(text).digest();
    const keyId = digest('reenlock trace key v1').subarray(0, 8).toString('base64url');
    const mac = digest('reenlock trace v2\nshop\n1700000030000\ntrace-1').toString('base64url');
    expect(signed).toBe(`v2.${keyId}.1700000030000.${mac}`);
    expect(of([Buffer.from(newest)]).sign('trace-1', now)).toBe(signed);
    expect(ours.sign('trace-1', now + 0.75)).toBe(signed);
  });

  it.each<[string, number, string | undefined]>([
    ['at once', now, undefined],
    ['in its last millisecond', now + 29_999, undefined],
    ['when it expires', now + 30_000, 'expired'],
    ['long after', now + 3_600_000, 'expired'],
    ['by a clock that is 30 s behind the signer’s', now - 30_000, undefined],
    ['by a clock that is further behind', now - 30_001, 'future'],
    ['by a clock that is far behind', 0, 'future'],
    ['by a clock that has no time', Number.NaN, 'expired'],
  ])('A signature is good for 30 s, on clocks that differ by less than 30 s: %s', (_, at, refusal) => {
    expect(ours.refusalOf('trace-1', signed, at)).toBe(refusal);
  });

  const [, keyId, expiry, mac = ''] = signed.split('.');
  const stranger = of(['a-secret-that-nobody-else-has-here']).sign('trace-1', now);
  // The last letter carries two bits that no byte has: another one in its place would decode to the same bytes.
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const sameBytes = mac.slice(0, -1) + alphabet[alphabet.indexOf(mac.slice(-1)) ^ 1];
  it.each<[string, string, unknown, string?]>([
    ['absent', 'unsigned', undefined],
    ['absent, as `Headers` say it', 'unsigned', null],
    ['of another audience, and expired', 'mismatch', of([newest], 'bank').sign('trace-1', now - 60_000)],
    ['an array', 'malformed', [signed]],
    ['empty', 'malformed', ''],
    ['there twice', 'malformed', `${signed}, ${signed}`],
    ['for another id', 'mismatch', signed, 'trace-2'],
    ['for an id that it begins with', 'mismatch', signed, 'trace-'],
    ['for another audience', 'mismatch', ours.sign('trace-1', now, 'bank')],
    ['by an unknown secret', 'unknown-secret', stranger],
    ['by an unknown secret, under a key id that is known', 'mismatch', stranger.replace(/^v2\.[^.]+/, `v2.${keyId}`)],
    [
      'by a known secret, under the key id of another',
      'mismatch',
      `v2.${of([older]).sign('x', now).split('.')[1]}.${expiry}.${mac}`,
    ],
    ['by a known secret, under a key id that is unknown', 'unknown-secret', `v2.${'A'.repeat(11)}.${expiry}.${mac}`],
    ['truncated by a letter', 'malformed', signed.slice(0, -1)],
    ['longer by a letter', 'malformed', `${signed}A`],
    ['without its MAC', 'malformed', `v2.${keyId}.${expiry}.`],
    ['with a later expiry than was signed', 'mismatch', `v2.${keyId}.1700000030001.${mac}`],
    ['with its expiry written otherwise', 'mismatch', `v2.${keyId}.01700000030000.${mac}`],
    ['with an expiry that is no number', 'malformed', `v2.${keyId}.Infinity.${mac}`],
    ['with a letter changed', 'mismatch', `v2.${keyId}.${expiry}.${mac[0] === 'A' ? 'B' : 'A'}${mac.slice(1)}`],
    ['of the same bytes in other letters', 'mismatch', `v2.${keyId}.${expiry}.${sameBytes}`],
    ['of another version', 'malformed', signed.replace('v2', 'v1')],
    ['with white space', 'malformed', ` ${signed}`],
    ['with a line break', 'malformed', `${signed}\n`],
    ['8 KB long', 'malformed', 'v2.'.repeat(2_731)],
  ])('A signature that is %s is refused as %s', (_, refusal, signature, traceId = 'trace-1') => {
    expect(ours.refusalOf(traceId, signature, now)).toBe(refusal);
    expect(ours.refusalOf('trace-1', signed, now)).toBeUndefined();
  });

  it('A signature is accepted by the newest secret, an older one that is known, or a newer one that was announced', () => {
    const [before, during, after] = [of([older, newest]), of([newest, older]), of([newest])];
    for (const [signer, verifier] of [
      [before, during],
      [during, before],
      [during, after],
      [after, during],
    ] as const) {
      expect(verifier.refusalOf('trace-1', signer.sign('trace-1', now), now)).toBeUndefined();
    }
    expect(after.refusalOf('trace-1', before.sign('trace-1', now), now)).toBe('unknown-secret');
    expect(of([newest, older, oldest]).refusalOf('t', of([oldest]).sign('t', now), now)).toBeUndefined();
  });

  it('A signature does not change with bytes that are overwritten later', () => {
    const bytes = Buffer.from(newest);
    const signatures = of([bytes]);
    bytes.fill(0);
    expect(signatures.sign('trace-1', now)).toBe(signed);
  });
});

describe('traceHeaders', () => {
  const trust = { secrets: [newest, older], audience: 'shop' };

  it('traceHeaders signs the id, by the wall clock, for the audience of this service or the named one', () => {
    const { job, clock } = setUp({ trust });
    const { wallMs } = clock.now();
    expect(job('trace-1').in(traceHeaders)).toEqual({
      'X-Trace-Id': 'trace-1',
      'X-Trace-Branch': 'trace-1',
      'X-Trace-Signature': ours.sign('trace-1', wallMs),
    });
    clock.jumpWall(5_000);
    expect(job('trace-1').in(() => traceHeaders({ audience: 'bank' }))).toEqual({
      'X-Trace-Id': 'trace-1',
      'X-Trace-Branch': 'trace-1',
      'X-Trace-Signature': ours.sign('trace-1', wallMs + 5_000, 'bank'),
    });
  });

  it('traceHeaders signs the id of a job within a job, with the secrets of its own locks if it has others', async () => {
    const { job, clock, locks } = setUp({ trust });
    const other = setUp({ trust: { secrets: [oldest], audience: 'bank' } });
    const unsigned = setUp();
    const { wallMs } = clock.now();
    const outer = job('outer');
    const inner = (of: Locks) => outer.in(() => runInTrace(traceHeaders, { locks: of }));
    const own = await inner(locks);
    expect(own).toHaveProperty('X-Trace-Signature', ours.sign(own['X-Trace-Branch'] as string, wallMs));
    const others = await inner(other.locks);
    const signature = of([oldest], 'bank').sign(others['X-Trace-Branch'] as string, wallMs);
    expect(others).toHaveProperty('X-Trace-Signature', signature);
    expect(Object.keys(await inner(unsigned.locks))).toEqual(['X-Trace-Id', 'X-Trace-Branch']);
  });

  it('traceHeaders has nothing to sign with if `trust` has no secrets, and nothing to sign outside a scope', () => {
    expect(
      setUp({ trust: 'internal' })
        .job('trace-1')
        .in(() => traceHeaders({ audience: 'bank' })),
    ).toEqual({
      'X-Trace-Id': 'trace-1',
      'X-Trace-Branch': 'trace-1',
    });
    setUp({ trust });
    expect(traceHeaders({ audience: 'bank' })).toEqual({});
  });

  it.each<[unknown, string]>([
    [{ audience: '' }, 'Expected `audience` to be 1 to 128 printable ASCII characters without spaces, got `` (string)'],
    [
      { audience: ['bank'] },
      'Expected `audience` to be 1 to 128 printable ASCII characters without spaces, got a value of type array',
    ],
    [{ for: 'bank' }, 'Expected the options of traceHeaders to be among `audience`, got `for`'],
    ['bank', 'Expected the options of traceHeaders to be an object, got `bank` (string)'],
  ])('traceHeaders refuses %j', (options, message) => {
    expect(() => traceHeaders(options as never)).toThrow(new LockConfigError(message));
  });
});
