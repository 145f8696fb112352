import { pagesAt } from './address.generated.ts';

/** The page that explains the code of an error or warning: a URL, or a path in the installed package. */
export function helpPage(code: string): string {
  return `${pagesAt}docs/reference/errors.md#${code.toLowerCase()}`;
}
