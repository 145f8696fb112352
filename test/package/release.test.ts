import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { anchorOf, headingsOf, linksOf, readDocument } from '../docs/markdown.ts';
import { cache, root } from './packed.ts';

const address = 'https://example.com/owner/reenlock';
const set = {
  repository: { type: 'git', url: `git+${address}.git` },
  homepage: 'https://example.com/reenlock',
  bugs: { url: `${address}/issues` },
  author: 'A. Author <author@example.com>',
};
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };

let folder: string;
beforeAll(() => {
  mkdirSync(cache, { recursive: true });
  folder = mkdtempSync(join(cache, 'release-'));
  cpSync(join(root, 'scripts'), join(folder, 'scripts'), { recursive: true });
});
afterAll(() => rmSync(folder, { recursive: true }));

function writeManifest(fields: object): void {
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...manifest, workspaces: undefined, ...fields }));
}

describe('npm run release:check', () => {
  const check = () => spawnSync('npm', ['run', '--silent', 'release:check'], { cwd: folder, encoding: 'utf8' });
  const unset = Object.fromEntries(Object.keys(set).map((field) => [field, undefined]));

  it('A release fails with a list of what package.json lacks', () => {
    writeManifest(unset);
    const { status, stderr } = check();
    expect(status).toBe(1);
    expect(stderr.match(/^- "\w+"/gm)).toEqual(['- "repository"', '- "homepage"', '- "bugs"', '- "author"']);
  });

  it.each(Object.keys(set))('A release without `%s` fails for this alone', (field) => {
    writeManifest({ ...set, [field]: undefined });
    const { status, stderr } = check();
    expect(status).toBe(1);
    expect(stderr.match(/^- "\w+"/gm)).toEqual([`- "${field}"`]);
  });

  it('A release is not possible from an address that no browser opens', () => {
    writeManifest({ ...set, repository: { type: 'git', url: 'git@example.com:owner/reenlock.git' } });
    expect(check().status).toBe(1);
  });

  it('A release is possible once all are set', () => {
    writeManifest(set);
    expect(check()).toMatchObject({ status: 0, stderr: '' });
  });
});

describe('a package with an address', () => {
  const published = ['README.md', 'SECURITY.md'];
  let unpacked: string;
  beforeAll(() => {
    const built = ['LICENSE', 'CHANGELOG.md', 'docs', 'src', 'tsconfig.json', 'tsconfig.build.json'];
    for (const file of [...published, ...built]) cpSync(join(root, file), join(folder, file), { recursive: true });
    writeManifest(set);
    // With the scripts that npm runs before it packs and after.
    execFileSync('npm', ['pack', '--silent'], { cwd: folder });
    unpacked = join(folder, 'unpacked');
    mkdirSync(unpacked);
    execFileSync('tar', ['-xzf', `reenlock-${manifest.version}.tgz`, '-C', unpacked, '--strip-components=1'], {
      cwd: folder,
    });
  });

  const filesAt = new RegExp(`^${address}/(blob|raw)/v${manifest.version.replaceAll('.', '\\.')}/([^#]+)(?:#(.+))?$`);

  /** Whether the repository has the file and the heading that a URL names. Pictures are raw files. */
  function leadsSomewhere(url: string): boolean {
    const [, kind, file = '', anchor] = filesAt.exec(url) ?? [];
    if (!existsSync(join(root, file)) || (kind === 'raw') !== /\.(webp|png|svg)$/.test(file)) return false;
    return anchor === undefined || headingsOf(readDocument(file)).map(anchorOf).includes(anchor);
  }

  it.each(published)(
    'Every link and picture in the published %s leads from any page to a file of that version',
    (document) => {
      const text = readFileSync(join(unpacked, document), 'utf8');
      const links = linksOf(text).filter((link) => !link.startsWith('#'));
      expect(links.filter((link) => !/^https:\/\//.test(link))).toEqual([]);
      const own = links.filter((link) => link.startsWith(address) && link !== `${address}/security/advisories/new`);
      expect(own.length).toBe(linksOf(readDocument(document)).filter((link) => !/^(#|https:)/.test(link)).length);
      expect(own.filter((link) => !leadsSomewhere(link))).toEqual([]);
    },
  );

  it('The published SECURITY.md links to the form for a report', () => {
    const text = readFileSync(join(unpacked, 'SECURITY.md'), 'utf8');
    expect(linksOf(text)).toContain(`${address}/security/advisories/new`);
  });

  it('Packing leaves the documents of the repository as they are', () => {
    for (const document of published) {
      expect(readFileSync(join(folder, document), 'utf8')).toBe(readFileSync(join(root, document), 'utf8'));
    }
  });

  it('An error and a warning of the published package name the URL that explains them', () => {
    const code = `
      const { createLocks, getLock } = require(${JSON.stringify(unpacked)});
      process.on('warning', ({ detail }) => console.log(/^See (.+)$/m.exec(detail)[1]));
      try { createLocks({ waitMs: 'soon' }); } catch (error) { console.log(error.help); }
      getLock('order:undefined');`;
    const urls = execFileSync('node', ['--no-warnings', '-e', code], { encoding: 'utf8', cwd: root })
      .trim()
      .split('\n');
    expect(urls.length).toBe(2);
    expect(urls.filter((url) => !leadsSomewhere(url))).toEqual([]);
  });
});
