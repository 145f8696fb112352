import type { IncomingMessage } from 'node:http';
import type { BoardCall } from './board-reply.ts';

const maxBodyBytes = 16_384;

/** Why a request was refused: its HTTP status, and a sentence for its sender. */
export class RequestRefusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/**
 * Throws a `RequestRefusal` unless the board's own page sent this request. Browsers that send no `Sec-Fetch-Site` send an
 * `Origin`; other clients must send one of the two.
 */
export function checkSameOrigin({ headers }: IncomingMessage): void {
  const site = headers['sec-fetch-site'];
  const isOwn = site === undefined ? isOwnOrigin(headers) : site === 'same-origin';
  if (!isOwn) throw new RequestRefusal(403, 'Only the page of the board may do this');
}

/**
 * Throws a `RequestRefusal` for a GET that a page of another site causes: each would take the place of a viewer. Addresses that a
 * user types, and clients that are no browsers, may look.
 */
export function checkNotCrossSite({ headers }: IncomingMessage): void {
  const site = headers['sec-fetch-site'];
  const isCrossSite = site === undefined ? headers.origin !== undefined && !isOwnOrigin(headers) : !ownSites.has(site);
  if (isCrossSite) throw new RequestRefusal(403, 'Only the page of the board may do this');
}

const ownSites = new Set<unknown>(['same-origin', 'none']);

function isOwnOrigin({ origin, host, ':authority': authority }: IncomingMessage['headers']): boolean {
  const own = host ?? authority;
  return own !== undefined && URL.canParse(origin ?? '') && new URL(origin as string).host === own;
}

/** Reads a JSON object from a request, which a body parser may have read before. Throws a `RequestRefusal`. */
export async function readJson({ req, body }: BoardCall): Promise<Readonly<Record<string, unknown>>> {
  // A form of another site can't have this type without a preflight request.
  if (!/^application\/json\s*(;|$)/i.test(req.headers['content-type'] ?? '')) {
    throw new RequestRefusal(415, 'Expected a body of type application/json');
  }
  const value = req.readableDidRead ? body : await readBody(req);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new RequestRefusal(400, 'Expected the body to be a JSON object');
}

async function readBody(req: IncomingMessage): Promise<unknown> {
  const length = req.headers['content-length'];
  if (length === undefined) throw new RequestRefusal(411, 'Expected a Content-Length');
  // Node reads no more than this of the request.
  if (Number(length) > maxBodyBytes) throw new RequestRefusal(413, `Expected ${maxBodyBytes} bytes at most`);
  try {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch (cause) {
    throw Object.assign(new RequestRefusal(400, 'Expected the body to be JSON'), { cause });
  }
}
