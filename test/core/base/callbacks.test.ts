import { readdirSync, readFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';

const src = join(__dirname, '../../../src');

/** The code of the package, but for the page of the board and what only tests use. */
const sources = readdirSync(src, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && /\.ts$/.test(entry.name) && !/\.generated\.ts$/.test(entry.name))
  .map((entry) => relative(src, join(entry.parentPath, entry.name)))
  .filter((path) => !path.startsWith('testing'))
  .map((path) => ({ name: basename(path), text: codeOf(readFileSync(join(src, path), 'utf8')) }));

/** A source without its comments: what their examples do is the application's. */
function codeOf(text: string): string {
  return text.replaceAll(/\/\*\*.*?\*\//gs, '');
}

function find(pattern: RegExp): string[] {
  return sources.flatMap(({ name, text }) => [...text.matchAll(pattern)].map(([found]) => `${name}: ${found}`)).sort();
}

describe('The callbacks that other code calls', () => {
  it('Each listener on an emitter of other code is `guarded`, does nothing, or is listed here with its reason', () => {
    const inline =
      /(?<!\b(locks|events))\.(on|once|prependListener|prependOnceListener)\(\s*'[^']+',\s*(\(|async |function).*/g;
    const unguarded = find(inline).filter((found) => !found.endsWith('() => {});'));
    expect(unguarded).toEqual([
      // Each listener of the connection runs by `safely` there.
      expect.stringMatching(/^connection-watch\.ts: \.on\('close'/),
      // It sets a field.
      expect.stringMatching(/^connection-watch\.ts: \.prependListener\('timeout'/),
      // It removes a listener.
      expect.stringMatching(/^open-response\.ts: \.on\('close'/),
      // It ends the process of the command line, with a message.
      expect.stringMatching(/^store\.ts: \.on\('error'/),
    ]);
  });

  it('Each promise that nobody awaits is left to `inBackground`, or is listed here with its reason', () => {
    const floating = /(?<=^\s+|[=(:)]>? )void (this\.#?\w+|[a-z]\w*)(\.#?\w+)*\(/gm;
    expect(find(floating)).toEqual([
      // They reject only with what the application's `next` throws, which is the application's.
      'connect-board.ts: void board.serve(',
      'connect.ts: void runInRequest(',
      // It says itself what fails.
      'main.ts: void main(',
      // These return no promise.
      'open-response.ts: void source.destroy(',
      'record.ts: void this.messages.push(',
      'sharded-subscriptions.ts: void this.#forget(',
    ]);
  });
});
