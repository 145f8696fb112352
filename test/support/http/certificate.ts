import { createHash, generateKeyPairSync, sign } from 'node:crypto';

/** PEM texts. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/**
 * Makes a certificate for 127.0.0.1 that is its own authority, for both ends of a connection. It is made anew for each
 * test, so that none is ever over, and none has a key that is known.
 */
export function createCertificate(): Certificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const name = sequence(set(sequence(oid('550403'), der(0x0c, Buffer.from('test')))));
  const dayMs = 86_400_000;
  const [from, to] = [-dayMs, dayMs].map((ms) => der(0x18, time(new Date(Date.now() + ms)))) as [Buffer, Buffer];
  const altNames = sequence(der(0x87, Buffer.from([127, 0, 0, 1])));
  const extensions = sequence(
    extension('551d13', sequence(der(0x01, Buffer.from([0xff])))), // basic constraints: an authority
    extension('551d11', altNames),
  );
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), // version 3
    der(0x02, Buffer.concat([Buffer.from([1]), createHash('sha256').update(spki).digest().subarray(0, 8)])),
    ecdsaWithSha256,
    name,
    sequence(from, to),
    name,
    spki,
    der(0xa3, extensions),
  );
  const signature = der(0x03, Buffer.concat([Buffer.from([0]), sign('sha256', body, privateKey)]));
  const text = sequence(body, ecdsaWithSha256, signature).toString('base64');
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${text.replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

/** One element of ASN.1's DER. */
function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, Buffer.concat(parts));
}

function set(part: Buffer): Buffer {
  return der(0x31, part);
}

function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'));
}

const ecdsaWithSha256 = sequence(oid('2a8648ce3d040302'));

function extension(hex: string, value: Buffer): Buffer {
  return sequence(oid(hex), der(0x04, value));
}

/** YYYYMMDDHHMMSSZ */
function time(date: Date): Buffer {
  return Buffer.from(`${date.toISOString().replace(/[-:T]|\..*/g, '')}Z`);
}
