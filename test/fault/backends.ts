import type { Backend, Random } from './backend.ts';
import { startMySqlCasBackend, startPostgresBackend, startPostgresCasBackend } from './database-backends.ts';
import { startClusterBackend, startQuorumBackend, startRedisBackend, startRedisCasBackend } from './redis-backends.ts';

/** By name, how to start each. */
export const backends: Readonly<Record<string, (random: Random) => Promise<Backend>>> = {
  redis: startRedisBackend,
  cluster: startClusterBackend,
  quorum: startQuorumBackend,
  postgres: startPostgresBackend,
  'redis-cas': startRedisCasBackend,
  'postgres-cas': startPostgresCasBackend,
  'mysql-cas': startMySqlCasBackend,
};
