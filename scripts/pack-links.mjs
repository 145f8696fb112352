// Makes the links and pictures of README.md and SECURITY.md absolute before they are packed: on the page of a registry, relative
// ones lead nowhere. With --undo they are made relative again. Does nothing while package.json has no `repository`.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { addressOf, filesAt, manifest } from './lib/address.mjs';
import { root } from './lib/generated.mjs';

const address = addressOf(manifest);
if (address !== undefined) {
  const change = process.argv.includes('--undo') ? undo : apply;
  for (const document of ['README.md', 'SECURITY.md']) {
    const path = join(root, document);
    writeFileSync(path, change(readFileSync(path, 'utf8'), filesAt(address, manifest)));
  }
}

/** Where GitHub takes reports that are private. */
function reportLink() {
  return `["Report a vulnerability"](${address}/security/advisories/new)`;
}

function apply(text, { pages, pictures }) {
  return text
    .replaceAll(/(!\[[^\]]*\]\()(?![a-z]+:)/g, `$1${pictures}`)
    .replaceAll(/\]\((?![a-z]+:|#)/g, `](${pages}`)
    .replaceAll(/(\bsrc=")(?![a-z]+:)/g, `$1${pictures}`)
    .replaceAll('"Report a vulnerability"', reportLink());
}

function undo(text, { pages, pictures }) {
  return text.replaceAll(reportLink(), '"Report a vulnerability"').replaceAll(pages, '').replaceAll(pictures, '');
}
