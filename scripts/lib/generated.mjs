import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';

export const root = join(import.meta.dirname, '../..');

/**
 * Writes a generated module. With --check nothing is written: exit code 1 means that the committed module is not what its
 * sources give, or that it can't be made of them.
 */
export function generate({ script, output, sources, build }) {
  const name = basename(script, '.mjs');
  try {
    const module = build();
    if (existsSync(output) && readFileSync(output, 'utf8') === module) return;
    if (process.argv.includes('--check')) {
      const command = `node ${relative(root, script)}`;
      throw new Error(`${relative(root, output)} differs from its ${sources}. Run: ${command}`);
    }
    writeFileSync(output, module);
  } catch (error) {
    console.error(`${name}: ${error.message}`);
    process.exitCode = 1;
  }
}

/** A text as a template literal of JavaScript. */
export function templateLiteral(text) {
  return `\`${text.replaceAll(/[\\`]|\$\{/g, '\\$&')}\``;
}
