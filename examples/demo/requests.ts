import type { Variant } from './moments.ts';
import type { ServerProcess } from './server-process.ts';

/** A request that was sent, and how it was answered. */
export interface Answer {
  /** Went along in the X-Trace-Id header, and so is the owner of the request's locks. */
  readonly traceId: string;
  readonly order: string;
  /** Which server process got it, from 1. */
  readonly server: number;
  readonly status: number;
}

export interface OrderState {
  readonly stock: number;
  readonly charged: number;
}

/** Sends a request for each of the orders, all at once, to one server after the other; trace ids begin with `prefix`. */
export function sendAll(
  servers: readonly ServerProcess[],
  variant: Variant,
  orders: readonly string[],
  prefix: string,
): Promise<Answer[]> {
  return Promise.all(
    orders.map(async (order, index) => {
      const traceId = `${prefix}${index + 1}`;
      const server = (index % servers.length) + 1;
      const url = `${urlOf(servers[server - 1]!, variant, order)}/shipments`;
      const { status } = await fetch(url, { method: 'POST', headers: { 'X-Trace-Id': traceId } });
      return { traceId, order, server, status };
    }),
  );
}

export async function readOrder(server: ServerProcess, variant: Variant, order: string): Promise<OrderState> {
  const response = await fetch(urlOf(server, variant, order));
  return (await response.json()) as OrderState;
}

function urlOf(server: ServerProcess, variant: Variant, order: string): string {
  return `http://127.0.0.1:${server.ports[variant]}/orders/${order}`;
}
