import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const root: string = join(__dirname, '../..');

/** A fenced block of a document. */
export interface Block {
  readonly language: string;
  readonly code: string;
  /** Where it stands in the document, from 1. */
  readonly line: number;
  /** The file that its first line names, as `// orders.ts`. */
  readonly file: string | undefined;
  /** What the comments before it say, by their first word: `<!-- prelude: shop -->`, `<!-- server -->`. */
  readonly marks: Readonly<Record<string, string>>;
}

/** A row of a table, by column; cells as they are written. */
export type Row = Readonly<Record<string, string>>;

export function readDocument(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

export function blocksOf(text: string): Block[] {
  const pattern = /((?:^<!-- [^\n]* -->\n)*)^```(\w+)\n(.*?)^```$/gms;
  return [...text.matchAll(pattern)].map(({ index, 1: comments = '', 2: language = '', 3: code = '' }) => ({
    language,
    code,
    line: text.slice(0, index + comments.length).split('\n').length,
    file: /^\/\/ (\S+\.ts)\n/.exec(code)?.[1],
    marks: marksOf(comments),
  }));
}

function marksOf(comments: string): Record<string, string> {
  const marks = [...comments.matchAll(/^<!-- ([\w-]+)(?:: (.*))? -->$/gm)];
  return Object.fromEntries(marks.map(([, name = '', value = '']) => [name, value]));
}

/** The lines that are not in fenced blocks. */
export function proseOf(text: string): string {
  return text.replace(/^```.*?^```$/gms, '');
}

/** The headings, without their marks. */
export function headingsOf(text: string): string[] {
  return [...proseOf(text).matchAll(/^#{1,6} (.*)$/gm)].map(([, title = '']) => title);
}

/** The text from a heading to the next one of its level or above. */
export function sectionOf(text: string, title: string): string {
  const start = text.search(new RegExp(`^#{1,6} ${title}$`, 'm'));
  if (start < 0) throw new Error(`No heading "${title}"`);
  const [mark = ''] = /^#+/.exec(text.slice(start)) ?? [];
  const rest = text.slice(start + mark.length);
  const end = rest.search(new RegExp(`^#{1,${mark.length}} `, 'm'));
  return end < 0 ? rest : rest.slice(0, end);
}

/** The first table of a text. */
export function tableOf(text: string): Row[] {
  const [head, , ...body] = /(^\|.*\|\n)+/m.exec(text)?.[0].trimEnd().split('\n') ?? [];
  if (head === undefined) throw new Error('No table');
  const names = cells(head);
  return body.map((line) => Object.fromEntries(cells(line).map((cell, column) => [names[column], cell])));
}

/** A cell's text without its backticks and link. */
export function plain(cell: string | undefined): string {
  return (cell ?? '').replace(/^\[(.*)\]\(.*\)$/, '$1').replace(/^`(.*)`$/, '$1');
}

/** Where links and images lead to. */
export function linksOf(text: string): string[] {
  return [...proseOf(text).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
}

/** The anchor that GitHub gives a heading. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');
}

function cells(line: string): string[] {
  return line
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim());
}
