import { redisBinary } from './redis-binary.ts';

/** Runs once before all suites: finds or installs Redis, and hands its path to the workers. */
export default function globalSetup(): void {
  process.env.REDIS_SERVER = redisBinary();
}
