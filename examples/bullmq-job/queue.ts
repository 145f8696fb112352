import { type ConnectionOptions, Queue } from 'bullmq';

export const queueName = 'settlements';

/** What a job is told. No trace id: a job that had its request's would get in while the request still works. */
export interface Settlement {
  readonly order: string;
}

/** The Redis at `REDIS_URL`, where jobs, orders and locks are kept. Throws when it is not set. */
export function redisUrl(): string {
  const url = process.env.REDIS_URL;
  if (url) return url;
  throw new Error('REDIS_URL is not set: BullMQ keeps its jobs in Redis');
}

/** For workers, which wait for Redis rather than to give up. */
export function connection(): ConnectionOptions {
  return { url: redisUrl(), maxRetriesPerRequest: null };
}

/** A job whose order stayed busy, or whose worker was told to stop, is tried again. */
export function openQueue(): Queue<Settlement> {
  const defaultJobOptions = { attempts: 10, backoff: { type: 'fixed', delay: 200 } };
  return new Queue<Settlement>(queueName, { connection: { url: redisUrl() }, defaultJobOptions });
}
