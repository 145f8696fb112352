import { programOf } from '../processes/executable.ts';

const missing =
  'The tests need a real MariaDB server, and none was found. Any one of these helps: ' +
  '(1) put mariadbd and mariadb-install-db on the PATH; ' +
  '(2) run the tests as root on a Debian-like system, where they install it with apt-get.';

/** The path of one of the server's programs: from the PATH, else where Debian has it, else installed with apt-get. */
export function mariadbBinary(name: 'mariadbd' | 'mariadb-install-db'): string {
  return programOf('mariadb-server', name, missing, ['/usr/sbin', '/usr/bin']);
}
