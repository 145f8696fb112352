import { postgresBin } from '../postgres/binary.ts';
import { redisBinary } from '../redis/binary.ts';

/** Runs once before all suites: finds or installs Redis and PostgreSQL, and hands their paths to the workers. */
export default function globalSetup(): void {
  process.env.REDIS_SERVER = redisBinary();
  process.env.POSTGRES_BIN = postgresBin();
}
