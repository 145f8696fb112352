import { LockConfigError } from './model/errors.ts';

/** What code gets that imports a name from `reenlock` which another subpath has. The package's types do not have these names. */
function elsewhere(name: string, subpath: string): unknown {
  return function misplaced(): never {
    throw new LockConfigError(`Expected \`${name}\` to be imported from \`${subpath}\`, got it from \`reenlock\``);
  };
}

const framework = 'reenlock/express` or that of your framework, `reenlock/…';

export const RedisStore: unknown = elsewhere('RedisStore', 'reenlock/redis');
export const QuorumStore: unknown = elsewhere('QuorumStore', 'reenlock/redis');
export const CasStore: unknown = elsewhere('CasStore', 'reenlock/redis');
export const PostgresStore: unknown = elsewhere('PostgresStore', 'reenlock/postgres');
export const MySqlCas: unknown = elsewhere('MySqlCas', 'reenlock/mysql');
export const traceContext: unknown = elsewhere('traceContext', framework);
export const lockOn: unknown = elsewhere('lockOn', framework);
