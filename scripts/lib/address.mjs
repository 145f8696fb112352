import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './generated.mjs';

/** package.json, where `repository` is the one place that has the address of the repository. */
export const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** The address of the repository in a browser; undefined if `repository` has none. */
export function addressOf({ repository }) {
  const url = typeof repository === 'string' ? repository : repository?.url;
  return /^(?:git\+)?(https:\/\/[^/\s]+\/[^\s]+?)(?:\.git)?\/?$/.exec(url ?? '')?.[1];
}

/** Where the files of the published version are: as pages, and as they are for pictures. */
export function filesAt(address, { version }) {
  return { pages: `${address}/blob/v${version}/`, pictures: `${address}/raw/v${version}/` };
}
