import type { IncomingMessage, Server } from 'node:http';
import { BlockList, isIP, type Socket } from 'node:net';
import { isPromise, type MaybePromise } from '../core/base/maybe-promise.ts';
import { warnOnce } from '../core/base/process-state.ts';
import { LockConfigError } from '../core/model/errors/mistakes.ts';
import type { UnsignedTrust } from '../core/scope/trace-id.ts';

/** Whether the sender of a request may name any trace. `socket` is its connection, if that is known. */
export function isTrusted(request: IncomingMessage, socket: Socket | undefined, trust: UnsignedTrust): boolean {
  if (trust === 'all') return true;
  if (typeof trust === 'function') return isTrue(trust(request));
  if (trust !== 'internal' || socket === undefined || !isPeerInside(socket)) return false;
  return hasAllHeaders(request, socket) && isForwardedInside(request);
}

/** A promise is an error: its requests would always be refused, and a rejection would end the process. */
function isTrue(returned: MaybePromise<boolean>): boolean {
  if (!isPromise(returned)) return returned === true;
  returned.then(undefined, () => {});
  throw new LockConfigError('Expected `trust` to return true or false, got a promise');
}

/** Warns the operator in production, once, that ids are refused because `trust` is not set. */
export function warnOfUnset(): void {
  warnOnce(
    'LOCK_TRUST',
    "Expected `trust` to be set in production, got a trace header without it: the id was not adopted. Set `trust` to 'internal' if every proxy in front strips the header or adds its client's address, to `{ secrets, audience }` if callers sign their ids, else to 'none'",
  );
}

/** Warns the operator in production, once, that every client may own any lock. */
export function warnOfAll(): void {
  warnOnce(
    'LOCK_TRUST_ALL',
    "`trust` is 'all': every client that can reach this service may name a trace and re-enter its locks. Set it to `{ secrets, audience }`, 'internal' or 'none', unless only your own services can reach it",
  );
}

const inside = new BlockList();
// RFC 1918, RFC 6598, loopback and link-local; below, the same for IPv6 (RFC 4193).
for (const [net, prefix] of [
  ['127.0.0.0', 8],
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['100.64.0.0', 10],
  ['169.254.0.0', 16],
] as const) {
  inside.addSubnet(net, prefix, 'ipv4');
}
inside.addAddress('::1', 'ipv6');
inside.addSubnet('fc00::', 7, 'ipv6');
inside.addSubnet('fe80::', 10, 'ipv6');

/**
 * A unix socket and the socket of an in-process call have no address. A TCP connection that its client has reset has lost its address,
 * but still has a port.
 */
function isPeerInside(socket: Socket): boolean {
  const { remoteAddress } = socket;
  if (typeof remoteAddress === 'string') return isInside(remoteAddress);
  return socket.destroyed !== true && socket.localPort === undefined;
}

/** An IPv4 address that is mapped to IPv6 counts as that IPv4 address. */
function isInside(address: string): boolean {
  const family = isIP(address);
  return family !== 0 && inside.check(address, family === 4 ? 'ipv4' : 'ipv6');
}

/**
 * Node silently drops headers beyond a maximum: a client could send that many to hide the headers that the proxy added behind
 * them. `rawHeaders` has two items for each header.
 */
function hasAllHeaders({ rawHeaders }: IncomingMessage, socket: Socket): boolean {
  const maxCount = (socket as { server?: Partial<Server> }).server?.maxHeadersCount ?? 1_000;
  return maxCount <= 0 || rawHeaders === undefined || rawHeaders.length < 2 * maxCount;
}

/**
 * Whether every address in the forwarding headers is inside. Text that is not an address counts as outside. Starts with the last
 * ones: a proxy adds its client behind the client's own list, which may be forged and long.
 */
function isForwardedInside({ headers }: IncomingMessage): boolean {
  const isListInside = (list: string | string[] | undefined): boolean =>
    split(list, /,/)
      .reverse()
      .every((address) => isInside(bareAddress(address)));
  const isHopInside = (hop: string): boolean => {
    const address = /^for\s*=\s*(.*)$/i.exec(hop)?.[1];
    return address === undefined || isInside(bareAddress(address));
  };
  return (
    isListInside(headers['x-forwarded-for']) &&
    isListInside(headers['x-real-ip']) &&
    split(headers.forwarded, /[,;]/).reverse().every(isHopInside)
  );
}

function split(header: string | string[] | undefined, at: RegExp): string[] {
  if (header === undefined) return [];
  const parts = String(header).split(at);
  return parts.map((part) => part.trim()).filter((part) => part !== '');
}

/** Removes the quotes, brackets and port that RFC 7239 and common proxies write. */
function bareAddress(text: string): string {
  const unquoted = text.replace(/^"|"$/g, '');
  return /^\[([^\]]+)\](:\d+)?$/.exec(unquoted)?.[1] ?? unquoted.replace(/^([\d.]+):\d+$/, '$1');
}
