import { pages } from '../docs/workshop.ts';
import { type Packed, packPackage, runBinary } from './packed.ts';

describe('the published package', () => {
  let packed: Packed;
  beforeAll(() => {
    packed = packPackage();
  });
  afterAll(() => packed?.remove());

  it('has the build, its documents and nothing else', () => {
    const documents = ['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', 'package.json', ...pages()];
    const built = packed.files.filter((file) => /^dist\/(core|express|koa)\/.*\.(js|d\.ts)$/.test(file));
    expect([...packed.files].sort()).toEqual([...documents, ...built].sort());
    expect(built.filter((file) => file.endsWith('.js'))).toEqual(
      expect.arrayContaining(['core/index', 'core/redis', 'express/index', 'koa/index'].map((f) => `dist/${f}.js`)),
    );
  });

  it('has a module and its types in pairs', () => {
    const names = (ending: string) =>
      packed.files.filter((file) => file.endsWith(ending)).map((file) => file.slice(0, -ending.length));
    expect(names('.d.ts').sort()).toEqual(names('.js').sort());
  });

  it('passes publint', () => {
    expect(runBinary('publint', ['run', packed.tarball, '--strict'])).toContain('All good!');
  });

  it('gives its types in every module resolution', () => {
    const output = runBinary('attw', [packed.tarball, '--no-definitely-typed', '--format', 'json']);
    const { problems, analysis } = JSON.parse(output) as { problems?: object; analysis: { entrypoints: object } };
    expect(problems ?? {}).toEqual({});
    expect(Object.keys(analysis.entrypoints)).toEqual(expect.arrayContaining(['.', './redis', './express', './koa']));
  });
});
