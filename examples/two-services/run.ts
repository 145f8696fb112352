import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import express from 'express';
import { portOf } from '../orders/listen.ts';
import { openRedis } from './redis.ts';
import { freePort, ServiceProcess } from './service-process.ts';

/** Ships order 42 twice at once, over two service processes, and shows what each of them says. */
async function main(): Promise<void> {
  // An exit, so that what was started here ends with this process.
  process.once('SIGINT', () => process.exit(130));
  process.once('SIGTERM', () => process.exit(143));
  const redis = await openRedis();
  const bank = slowBank().listen(0, '127.0.0.1');
  await once(bank, 'listening');
  const ports = [await freePort(), await freePort()] as const;
  const [ordersUrl, paymentsUrl] = ports.map((port) => `http://127.0.0.1:${port}`) as [string, string];
  const env = {
    REDIS_URL: redis.url,
    BANK_URL: `http://127.0.0.1:${portOf(bank)}`,
    ORDERS_URL: ordersUrl,
    PAYMENTS_URL: paymentsUrl,
  };
  const services = [new ServiceProcess('orders', ports[0], env), new ServiceProcess('payments', ports[1], env)];
  try {
    await Promise.all(services.map((service) => service.listening));
    await Promise.all(['r1', 'r2'].map((traceId) => ship(ordersUrl, traceId)));
  } finally {
    await Promise.all(services.map((service) => service.stop()));
    bank.close();
    await redis.close();
  }
}

async function ship(ordersUrl: string, traceId: string): Promise<void> {
  const headers = { 'X-Trace-Id': traceId };
  const response = await fetch(`${ordersUrl}/orders/42/shipments`, { method: 'POST', headers });
  console.log(`${'client'.padEnd(9)} ${traceId} is answered ${response.status}: ${await response.text()}`);
}

function slowBank() {
  return express().post('/charges', async (_req, res) => {
    await sleep(200);
    res.sendStatus(201);
  });
}

main().catch((error: Error) => {
  console.error(error.message);
  process.exitCode = 1;
});
