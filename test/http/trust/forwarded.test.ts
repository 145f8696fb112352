import type { IncomingMessage } from 'node:http';
import { BlockList, type Socket } from 'node:net';
import { isTrusted } from '../../../src/http/trust.ts';

const socket = { remoteAddress: '10.0.0.1', localPort: 80 } as Socket;

function isAdopted(headers: Record<string, string>): boolean {
  return isTrusted(
    { headers, rawHeaders: Object.entries(headers).flat() } as unknown as IncomingMessage,
    socket,
    'internal',
  );
}

describe('A forwarding header', () => {
  const madeUp = '10.1.2.3, '.repeat(1_500);

  it.each([
    ['x-forwarded-for', `${madeUp}198.51.100.7`],
    ['forwarded', `${madeUp.replaceAll('10.', 'for=10.')}for=198.51.100.7`],
  ])('A long %s is judged from its end, where the proxy has added its client', (name, value) => {
    const check = jest.spyOn(BlockList.prototype, 'check');
    expect(isAdopted({ [name]: value })).toBe(false);
    // The peer, and the client.
    expect(check).toHaveBeenCalledTimes(2);
    check.mockRestore();
  });
});

it('A peer without an address is trusted on a unix socket or within the process, and not once its connection was reset', () => {
  const isInside = (socket: object | undefined) => isTrusted({ headers: {} } as never, socket as never, 'internal');
  expect(isInside({ destroyed: false })).toBe(true);
  expect(isInside({ destroyed: false, localPort: 3000 })).toBe(false);
  expect(isInside({ destroyed: true })).toBe(false);
  expect(isInside(undefined)).toBe(false);
});
