import { join } from 'node:path';
import { watchLeaks } from '../helpers/leaks.ts';
import { runScript } from '../helpers/processes.ts';
import { runBinary } from '../package/packed.ts';
import { blocksOf, readDocument } from './markdown.ts';
import { Workshop } from './workshop.ts';

watchLeaks();

describe('the code of the guide to @Locked', () => {
  const document = 'docs/decorators.md';
  let workshop: Workshop;
  beforeAll(() => {
    workshop = new Workshop();
    workshop.add(document);
  });
  afterAll(() => workshop.remove());

  const blocks = blocksOf(readDocument(document)).filter(({ language }) => language === 'ts');

  it('is there, and compiles under standard decorators and under experimentalDecorators', () => {
    expect(blocks.length).toBeGreaterThan(0);
    workshop.compile();
    runBinary('tsc', ['-p', workshop.folder, '--experimentalDecorators']);
  });

  it.each(blocks.map((_, index) => `docs-decorators-md-${index}.ts`))('%s does what it says', async (file) => {
    expect(await runScript(join(workshop.folder, file))).toMatchObject({ code: 0, stderr: '' });
  });
});
