import type { TcpProxy } from '../support/processes/tcp-proxy.ts';
import type { StoreSetup } from './processes/open-store.ts';

/** Something that goes wrong. Two of one kind never go wrong at once. */
export interface Fault {
  readonly kind: 'server' | 'connection' | 'data' | 'process';
  readonly name: string;
  /** Resolves with what ends it, if it does not end by itself. */
  begin(): Promise<(() => unknown) | undefined>;
}

/** The servers of a store, what can go wrong with them, and how processes come to them. */
export interface Backend {
  /** For client processes: through proxies, where there are any. */
  readonly setup: StoreSetup;
  /** For the test itself, past the proxies. */
  readonly direct: StoreSetup;
  readonly faults: readonly Fault[];
  stop(): Promise<void>;
}

/** A number in [0, 1). */
export type Random = () => number;

/** What can go wrong with connections that go through a proxy. */
export function connectionFaults(proxy: TcpProxy, random: Random, of = ''): Fault[] {
  const fault = (name: string, spoil: () => unknown, end: () => unknown = () => {}): Fault => ({
    kind: 'connection',
    name: `${name}${of}`,
    begin: async () => {
      spoil();
      return end;
    },
  });
  // Those that were half-open stay so.
  const heal = (): void => {
    proxy.heal();
    proxy.cut();
  };
  return [
    fault('connections reset', () => proxy.cut()),
    fault('connections refused', () => proxy.cutOff(), heal),
    fault('connections half-open', () => proxy.halfOpen(), heal),
    fault('connections slow', () => proxy.delay(200, random), heal),
  ];
}

/** A server whose processes can be stopped, and ended as by a crash. */
interface Breakable {
  pause(): unknown;
  resume(): unknown;
  kill(): Promise<void>;
  restart(): Promise<void>;
}

export function serverFaults(server: Breakable, of = ''): Fault[] {
  return [
    {
      kind: 'server',
      name: `a server stopped${of}`,
      begin: async () => {
        await server.pause();
        return () => server.resume();
      },
    },
    {
      kind: 'server',
      name: `a server killed, and started later${of}`,
      begin: async () => {
        await server.kill();
        return () => server.restart();
      },
    },
  ];
}

/** What happens to a server at once. */
export function once(kind: Fault['kind'], name: string, happen: () => unknown): Fault {
  return {
    kind,
    name,
    begin: async () => {
      await happen();
      return undefined;
    },
  };
}
