import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import { checkOptions, type Rule, text, typed } from './validate.ts';

/** Adopts a trace if its path is signed with one of the secrets. `traceHeaders` signs with the same secrets. */
export interface SignedTrust {
  /**
   * 1 to 4 secrets of 32 bytes or more, shared by the services that trust each other. The first one signs, all of them
   * verify. To rotate, add the new secret at the end everywhere, then put it first, then remove the old one.
   */
  readonly secrets: readonly (string | Uint8Array)[];
  /** The name that callers sign for: this service's, or one that several services share. 1 to 128 printable ASCII characters. */
  readonly audience: string;
}

/** The header with the signature of the branch. */
export const signatureHeader = 'X-Trace-Signature';

const minSecretBytes = 32;
const maxSecrets = 4;
/** How long a signature is valid, and how far ahead an expiry may be: the difference allows for clocks that differ. */
const lifeMs = 30_000;
const maxAheadMs = 60_000;

/** The form of an audience. Without line breaks, the signed text can be read in one way only. */
export const audienceRule: Rule = text(/^[\x21-\x7e]{1,128}$/, '1 to 128 printable ASCII characters without spaces');

const rules = {
  secrets: {
    expected: `a list of 1 to ${maxSecrets} different secrets, strings or bytes, each of ${minSecretBytes} bytes or more`,
    got: (value: unknown) => (Array.isArray(value) && faultOf(value)) || typed(value),
    accepts: (value: unknown) => Array.isArray(value) && faultOf(value) === undefined,
  },
  audience: audienceRule,
};

/**
 * Signs paths of branches, which begin with the trace id, and verifies signatures: HMAC-SHA256 over path, audience and expiry, written
 * `v2.<key id>.<expiry in ms>.<MAC in base64url>`. The key id is derived from the secret, so that the right secret is found
 * while two are in use. Secrets are private fields: logging and JSON can't leak them.
 */
export class TraceSignatures {
  readonly audience: string;
  readonly #newest: Key;
  readonly #keys: ReadonlyMap<string, Key>;

  /** Throws `LockConfigError`; its message shows no secret. */
  constructor(options: SignedTrust) {
    const { secrets, audience } = checkOptions(options, rules, '`trust`', 'secrets', 'audience');
    const keys = secrets.map(keyOf);
    this.audience = audience;
    this.#newest = keys[0] as Key;
    this.#keys = new Map(keys.map((key) => [key.id, key]));
    Object.freeze(this);
  }

  /** Signs a path for `audience` with the newest secret. Valid for 30 seconds from `nowMs` on the wall clock. */
  sign(path: string, nowMs: number, audience: string = this.audience): string {
    const expiry = String(Math.floor(nowMs) + lifeMs);
    const { id, secret } = this.#newest;
    return `v2.${id}.${expiry}.${mac(secret, path, audience, expiry)}`;
  }

  /** Why `signature` is refused; undefined if it is for this path and audience, by a known secret, and has not expired. */
  refusalOf(path: string, signature: unknown, nowMs: number): SignatureRefusal | undefined {
    if (signature === undefined || signature === null) return 'unsigned';
    const [, id, expiry = '', sent = ''] = (typeof signature === 'string' && form.exec(signature)) || [];
    if (id === undefined) return 'malformed';
    const key = this.#keys.get(id);
    if (key === undefined) return 'unknown-secret';
    // Compared as text of a fixed length: two texts may decode to the same bytes.
    const isOurs = timingSafeEqual(Buffer.from(sent), Buffer.from(mac(key.secret, path, this.audience, expiry)));
    // Before the expiry, which anybody could have written.
    if (!isOurs) return 'mismatch';
    const aheadMs = Number(expiry) - nowMs;
    if (!(aheadMs > 0)) return 'expired';
    return aheadMs > maxAheadMs ? 'future' : undefined;
  }
}

/**
 * Why a signature was refused: there is none; it has not the form of a signature; its secret is not among ours; it is for another
 * audience or for another path; it has expired; or its expiry is too far ahead.
 */
export type SignatureRefusal = 'unsigned' | 'malformed' | 'unknown-secret' | 'mismatch' | 'expired' | 'future';

const form = /^v2\.([A-Za-z0-9_-]{11})\.(\d{1,15})\.([A-Za-z0-9_-]{43})$/;

interface Key {
  readonly id: string;
  readonly secret: KeyObject;
}

function keyOf(secret: string | Uint8Array): Key {
  const key = createSecretKey(bytesOf(secret));
  const digest = createHmac('sha256', key).update('reenlock trace key v1').digest();
  return { id: digest.toString('base64url', 0, 8), secret: key };
}

function mac(secret: KeyObject, path: string, audience: string, expiry: string): string {
  return createHmac('sha256', secret).update(`reenlock trace v2\n${audience}\n${expiry}\n${path}`).digest('base64url');
}

/** Describes what is wrong with a list of secrets. Shows their lengths at most. */
function faultOf(values: readonly unknown[]): string | undefined {
  if (values.length < 1 || values.length > maxSecrets) return `a list of ${values.length}`;
  const distinct = new Set<string>();
  for (const [index, value] of values.entries()) {
    const where = `as number ${index + 1} of the list`;
    if (typeof value !== 'string' && !(value instanceof Uint8Array)) return `${typed(value)} ${where}`;
    const bytes = bytesOf(value);
    if (bytes.length < minSecretBytes) return `${bytes.length} bytes ${where}`;
    const text = bytes.toString('hex');
    if (distinct.has(text)) return `one of the others ${where}`;
    distinct.add(text);
  }
  return undefined;
}

/** Bytes as they are; a string as UTF-8. */
function bytesOf(secret: string | Uint8Array): Buffer {
  return typeof secret === 'string'
    ? Buffer.from(secret)
    : Buffer.from(secret.buffer, secret.byteOffset, secret.byteLength);
}
