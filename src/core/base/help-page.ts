import { pagesAt } from './address.generated.ts';

/** Where the meaning of the code of an error or warning is explained, and what to do: a URL, or a path in the installed package. */
export function helpPage(code: string): string {
  return `${pagesAt}docs/reference/errors.md#${code.toLowerCase()}`;
}
