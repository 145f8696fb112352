import { mariadbBinary } from '../mysql/binary.ts';
import { postgresBin } from '../postgres/binary.ts';
import { promtoolBinary } from '../prometheus/binary.ts';
import { redisBinary } from '../redis/binary.ts';

/** Runs once before all suites: finds or installs Redis, PostgreSQL, MariaDB and promtool. Their paths go to the workers. */
export default function globalSetup(): void {
  process.env.REDIS_SERVER = redisBinary();
  process.env.POSTGRES_BIN = postgresBin();
  mariadbBinary('mariadbd');
  promtoolBinary();
}
