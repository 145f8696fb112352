import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { aptInstall } from '../processes/apt.ts';

const missing =
  'The tests need a real MariaDB server, and none was found. Any one of these helps: ' +
  '(1) put mariadbd and mariadb-install-db on the PATH; ' +
  '(2) run the tests as root on a Debian-like system, where they install it with apt-get.';

/** The path of one of the server's programs: from the PATH, else where Debian has it, else installed with apt-get. */
export function mariadbBinary(name: 'mariadbd' | 'mariadb-install-db'): string {
  const path = find(name) ?? install(name);
  if (path === undefined) throw new Error(missing);
  return path;
}

function find(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter).filter(Boolean), '/usr/sbin', '/usr/bin'];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function install(name: string): string | undefined {
  aptInstall('mariadb-server', missing);
  return find(name);
}
