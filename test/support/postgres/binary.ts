import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { aptInstall } from '../processes/apt.ts';

const missing =
  'The tests need a real PostgreSQL server, and none was found. Any one of these helps: ' +
  '(1) put postgres and initdb on the PATH; ' +
  '(2) set POSTGRES_BIN to the folder that has them; ' +
  '(3) run the tests as root on a Debian-like system, where they install it with apt-get.';

/** Where Debian keeps them: a folder a version, none of them on the PATH. */
const debianFolder = '/usr/lib/postgresql';

/**
 * The folder of `postgres` and `initdb`: `POSTGRES_BIN`, else from the PATH, else where Debian has it, else installed with
 * apt-get. Throws when there is no way to get them; the tests are never skipped.
 */
export function postgresBin(): string {
  const named = process.env.POSTGRES_BIN;
  if (named) {
    if (!isBin(named)) throw new Error(`POSTGRES_BIN is '${named}', which does not have both. ${missing}`);
    return named;
  }
  const bin = onPath() ?? debianBin() ?? install();
  if (!bin) throw new Error(missing);
  return bin;
}

function onPath(): string | undefined {
  return (process.env.PATH ?? '').split(delimiter).filter(Boolean).find(isBin);
}

/** The newest. */
function debianBin(): string | undefined {
  if (!existsSync(debianFolder)) return undefined;
  const versions = readdirSync(debianFolder).sort((a, b) => Number(b) - Number(a));
  return versions.map((version) => join(debianFolder, version, 'bin')).find(isBin);
}

function isBin(folder: string): boolean {
  try {
    for (const name of ['postgres', 'initdb']) accessSync(join(folder, name), constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function install(): string | undefined {
  aptInstall('postgresql', missing);
  return debianBin();
}
