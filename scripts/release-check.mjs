// Fails with a list of what package.json lacks for a release: an address for the pages, for bugs, and an author.

import { addressOf, manifest } from './lib/address.mjs';

const isUrl = (value) => /^https:\/\/\S+$/.test(value ?? '');
const { homepage, bugs, author } = manifest;

const expected = [
  [
    'repository',
    addressOf(manifest) !== undefined,
    '{ "type": "git", "url": "git+https://<host>/<owner>/<name>.git" }',
  ],
  ['homepage', isUrl(homepage), '"https://…", the address of the site or of the README'],
  ['bugs', isUrl(bugs?.url ?? bugs), '{ "url": "https://…" }, where bugs are reported'],
  ['author', Boolean(author?.name ?? author), '"Name <mail address>"'],
];
const missing = expected.filter(([, isSet]) => !isSet);
if (missing.length > 0) {
  console.error('release-check: package.json is not ready for a release. Set:');
  for (const [field, , example] of missing) console.error(`- "${field}": ${example}`);
  process.exitCode = 1;
}
