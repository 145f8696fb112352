import { createServer, type Server } from 'node:http';
import { createServer as createHttp2Server, createSecureServer } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls, type TlsOptions } from 'node:tls';

/** What a stage's server speaks. */
export type Protocol = 'HTTP/1.1' | 'HTTPS' | 'HTTP/2' | 'HTTP/2 over TLS';

/** A server without an application. Those of HTTP/2 are used through what they share with HTTP's. */
export function createServerOf(protocol: Protocol): Server {
  if (protocol === 'HTTPS') return createHttpsServer(serverTls);
  if (protocol === 'HTTP/2') return createHttp2Server() as unknown as Server;
  if (protocol === 'HTTP/2 over TLS')
    return createSecureServer({ ...serverTls, allowHTTP1: true }) as unknown as Server;
  return createServer();
}

export function isHttp2(protocol: Protocol): boolean {
  return protocol.startsWith('HTTP/2');
}

// Both ends know the key: no certificate is needed.
const sharedKey = Buffer.from('known to both ends of a test');
const cipher = { ciphers: 'PSK-AES128-GCM-SHA256', minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' } as const;

const serverTls: TlsOptions = { ...cipher, pskCallback: () => sharedKey };

export const clientTls: ConnectionOptions = {
  ...cipher,
  pskCallback: () => ({ psk: sharedKey, identity: 'test' }),
  checkServerIdentity: () => undefined,
};

/** Speaks TLS over a connection. */
export function overTls(socket: Socket): Socket {
  return connectTls({ ...clientTls, socket });
}
