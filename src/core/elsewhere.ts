import { LockConfigError } from './model/errors/mistakes.ts';

/** The export for a name that is imported from `reenlock` although another subpath has it. The types do not have these names. */
function elsewhere(name: string, subpath: string): unknown {
  return function misplaced(): never {
    throw new LockConfigError(`Expected \`${name}\` to be imported from \`${subpath}\`, got it from \`reenlock\``);
  };
}

export const RedisStore: unknown = elsewhere('RedisStore', 'reenlock/redis');
export const QuorumStore: unknown = elsewhere('QuorumStore', 'reenlock/redis');
export const RetryingStore: unknown = elsewhere('RetryingStore', 'reenlock/redis');
export const CasStore: unknown = elsewhere('CasStore', 'reenlock/redis');
export const RedisCas: unknown = elsewhere('RedisCas', 'reenlock/redis');
export const PostgresCas: unknown = elsewhere('PostgresCas', 'reenlock/redis');
export const postgresCasTable: unknown = elsewhere('postgresCasTable', 'reenlock/redis');

export const PostgresStore: unknown = elsewhere('PostgresStore', 'reenlock/postgres');
export const postgresSchema: unknown = elsewhere('postgresSchema', 'reenlock/postgres');
export const MySqlCas: unknown = elsewhere('MySqlCas', 'reenlock/mysql');
export const mysqlCasTable: unknown = elsewhere('mysqlCasTable', 'reenlock/mysql');

const framework = 'reenlock/express` or that of your framework, `reenlock/…';

export const traceContext: unknown = elsewhere('traceContext', framework);
export const lockOn: unknown = elsewhere('lockOn', framework);
export const sendProblem: unknown = elsewhere('sendProblem', framework);
export const closeServer: unknown = elsewhere('closeServer', framework);
export const lockBoard: unknown = elsewhere('lockBoard', framework);
export const LockOn: unknown = elsewhere('LockOn', 'reenlock/nest');
export const LocksModule: unknown = elsewhere('LocksModule', 'reenlock/nest');
export const RunInTrace: unknown = elsewhere('RunInTrace', 'reenlock/nest');

export const collectLockMetrics: unknown = elsewhere('collectLockMetrics', 'reenlock/prometheus');
export const instrumentLocks: unknown = elsewhere('instrumentLocks', 'reenlock/otel');
export const createTestLocks: unknown = elsewhere('createTestLocks', 'reenlock/testing');
export const configureTestLocks: unknown = elsewhere('configureTestLocks', 'reenlock/testing');
export const describeStoreContract: unknown = elsewhere('describeStoreContract', 'reenlock/testing/contract');
