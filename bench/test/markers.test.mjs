import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fill } from '../report/markers.mjs';

const text =
  'Before.\n\n<!-- bench:results -->\nold\n<!-- /bench:results -->\n\nBetween.\n\n<!-- bench:curves -->\n<!-- /bench:curves -->\n';

test('The text between markers is replaced, and all other text stays', () => {
  const filled = fill(text, (name) => `new ${name}`);
  assert.equal(filled, text.replace('old', '\nnew results\n').replace('curves -->\n', 'curves -->\n\nnew curves\n\n'));
});

test('To fill a text twice is to fill it once', () => {
  const once = fill(text, (name) => `new ${name}`);
  assert.equal(
    fill(once, (name) => `new ${name}`),
    once,
  );
});

test('A text without markers stays as it is', () =>
  assert.equal(
    fill('Nothing here.', () => 'new'),
    'Nothing here.',
  ));

test('A marker without its end is refused', () => {
  assert.throws(() => fill('<!-- bench:results -->\nold\n', () => 'new'), /Expected <!-- \/bench:results -->/);
});
