import { processState } from '../base/process-state.ts';

/** Whether a key may have a part that can be written in two ways. Quick: it reads every key. */
const mayVary =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it looks for all but ASCII
  /(?:^|[:/|,])(?:\s|0\d)|\s(?:$|[:/|,])|^[A-Z]|[A-Z][^:/|,]{0,64}@|[\dA-F]{4}-[\dA-F]{4}-[\dA-F]{4}-|[^\u0000-\u007f]/;
const separator = /([:/|,])/;
const uuid = /^[\dA-F]{8}(-[\dA-F]{4}){3}-[\dA-F]{12}$/i;
const email = /^[^\s@]+@[^\s@]+$/;
/** The first part of several says what is locked: `order` in `order:42`. */
const kind = /^[A-Za-z_-]{3,}$/;

/** This many keys are remembered, the newest ones, and no longer ones than this. */
const maxRemembered = 1_000;
const maxLength = 256;

/**
 * Returns the plain spelling of a key if this process has locked another spelling of it, probably meant as the same key. The two
 * differ in nothing but white space around a part, leading zeros, the Unicode form, or the case of their first word, a UUID or an
 * e-mail address. Most keys cost one look. Only keys that are not in their plain spelling are remembered: the plain one is found
 * when it comes after that.
 */
export function spelledOtherwise(key: string, category: string | undefined): string | undefined {
  const { spellings } = processState();
  const plain = key.length <= maxLength && mayVary.test(key) ? plainSpelling(key) : key;
  if (plain === key && spellings.size === 0) return undefined;
  const id = `${category ?? ''}|${plain}`;
  const other = spellings.get(id);
  if (plain !== key && other !== key) {
    // The newest is the last.
    spellings.delete(id);
    spellings.set(id, key);
    if (spellings.size > maxRemembered) spellings.delete(spellings.keys().next().value as string);
  }
  return other === undefined || other === key ? undefined : plain;
}

function plainSpelling(key: string): string {
  const parts = key.normalize('NFC').split(separator);
  return parts.map((part, at) => plainPart(part.trim(), at === 0 && parts.length > 1)).join('');
}

function plainPart(part: string, isKind: boolean): string {
  if (/^0+\d+$/.test(part)) return part.replace(/^0+(?=\d)/, '');
  return (isKind && kind.test(part)) || uuid.test(part) || email.test(part) ? part.toLowerCase() : part;
}
