import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, type Socket } from 'node:net';
import type { Trust } from '../options.ts';

/** Whether the sender of a request may say which trace it belongs to, and so whose locks it re-enters. */
export function isTrusted(request: IncomingMessage, trust: Trust): boolean {
  if (trust === 'all') return true;
  if (trust === 'none') return false;
  if (typeof trust === 'function') return trust(request) === true;
  return isPeerInside(request.socket) && forwardedFor(request).every(isInside);
}

const inside = new BlockList();
// RFC 1918, RFC 6598, loopback and link-local; RFC 4193 and their like in IPv6.
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
 * A unix socket and a call within the process have no address; a TCP connection that its client has reset has none any
 * more, but still a port.
 */
function isPeerInside(socket: Socket | undefined): boolean {
  const address = socket?.remoteAddress;
  if (address !== undefined) return isInside(address);
  return socket?.destroyed !== true && socket?.localPort === undefined;
}

function isInside(address: string): boolean {
  const plain = address.replace(/^::ffff:/i, '');
  const family = isIP(plain);
  return family !== 0 && inside.check(plain, family === 4 ? 'ipv4' : 'ipv6');
}

/** Every address that a proxy wrote down; what can't be read as one counts as outside. */
function forwardedFor(request: IncomingMessage): string[] {
  const { forwarded } = request.headers;
  const lists = [request.headers['x-forwarded-for'], request.headers['x-real-ip']];
  const addresses = lists.flatMap((list) => split(list, /,/));
  const hops = split(forwarded, /[,;]/).filter((part) => /^for=/i.test(part));
  return [...addresses, ...hops.map((hop) => hop.slice('for='.length))].map(bareAddress);
}

function split(header: string | string[] | undefined, at: RegExp): string[] {
  if (header === undefined) return [];
  const parts = String(header).split(at);
  return parts.map((part) => part.trim()).filter((part) => part !== '');
}

/** Without quotes, brackets and port, as RFC 7239 and common proxies write them. */
function bareAddress(text: string): string {
  const unquoted = text.replace(/^"|"$/g, '');
  return /^\[([^\]]+)\]/.exec(unquoted)?.[1] ?? unquoted.replace(/^([\d.]+):\d+$/, '$1');
}
