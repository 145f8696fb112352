import { watchLeaks } from '../support/processes/leaks.ts';
import { Workshop } from './workshop.ts';

watchLeaks();

it('The code of the guide to @Locked compiles under experimentalDecorators, too', () => {
  const workshop = new Workshop();
  try {
    expect(workshop.add('docs/guides/decorators.md').length).toBeGreaterThan(0);
    expect(workshop.mistakes('--experimentalDecorators')).toEqual([]);
  } finally {
    workshop.remove();
  }
});
