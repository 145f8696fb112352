import { nestPage, Workshop } from './workshop.ts';

it.each([
  ['the guide to @Locked', 'docs/guides/decorators.md'],
  ['the page about Nest', nestPage],
])('The code of %s compiles under experimentalDecorators', (_, page) => {
  const workshop = new Workshop();
  try {
    expect(workshop.add(page).length).toBeGreaterThan(0);
    expect(workshop.mistakes('--experimentalDecorators')).toEqual([]);
  } finally {
    workshop.remove();
  }
});
