/** Locks in a table of MySQL or MariaDB: `reenlock/mysql`. */

export { CasStore, type CasStoreOptions } from './cas/cas-store.ts';
export { MySqlCas, type MySqlCasOptions, mysqlCasTable } from './mysql/mysql-cas.ts';
export type { MySqlConnection, MySqlPool, MySqlPromisePool } from './mysql/pool.ts';
