import { processState } from '../../../src/core/base/process-state.ts';
import { getLock } from '../../../src/core/index.ts';
import { recordWarnings } from '../../support/warnings.ts';

const warnings = recordWarnings();
beforeEach(() => processState().spellings.clear());

const spelling = expect.objectContaining({ code: 'LOCK_KEY_SPELLING' });

describe('Two spellings of one key', () => {
  it.each<[string, string, string]>([
    ['leading zeros', 'order:01', 'order:1'],
    ['leading zeros of several digits', 'order:007:items', 'order:7:items'],
    ['white space at the end', 'order:1 ', 'order:1'],
    ['white space around a part', 'order: 1:items', 'order:1:items'],
    ['a capital in the first word', 'Order:1', 'order:1'],
    ['capitals in a UUID', 'order:3F2504E0-4F89-11D3-9A0C-0305E82C3301', 'order:3f2504e0-4f89-11d3-9a0c-0305e82c3301'],
    ['capitals in an e-mail address', 'user:Ada@Example.com', 'user:ada@example.com'],
    ['another Unicode form', 'user:Ame\u0301lie', 'user:Am\u00e9lie'],
  ])('%s: two keys that differ in it warn once, with the line that locked', (_, first, second) => {
    for (const key of [first, second, first, second]) getLock(key);
    expect(warnings()).toEqual([
      expect.objectContaining({ code: 'LOCK_KEY_SPELLING', detail: expect.stringContaining('key-spelling.test.ts') }),
    ]);
  });

  it('A string with leading zeros and the number warn within a category', () => {
    for (const key of ['01', 1]) getLock(key, { category: 'order' });
    expect(warnings()).toEqual([spelling]);
  });

  it('Two spellings of which neither is the plain one warn, too', () => {
    getLock('order:01');
    getLock('order:001');
    expect(warnings()).toEqual([spelling]);
  });

  it('The warning shows the form of the keys, not what clients sent, and is one for each form', () => {
    for (const id of [1, 2, 3]) for (const key of [`order:0${id}`, `order:${id}`]) getLock(key);
    for (const key of ['cart:01', 'cart:1']) getLock(key);
    expect(warnings().map(({ message }) => /form `(.*?)`/.exec(message)?.[1])).toEqual(['order:*', 'cart:*']);
  });

  it.each<[string, string, string]>([
    ['other digits', 'order:01', 'order:10'],
    ['the case of an id', 'order:aB3x', 'order:ab3x'],
    ['the case of a key of one word', 'Reports', 'reports'],
    ['a date', 'report:2024-01-05', 'report:2024-1-5'],
    ['an inner space', 'tag:red wine', 'tag:redwine'],
    ['a decimal', 'rate:0.5', 'rate:.5'],
  ])('%s: two keys that differ in it are two keys, without a warning', (_, first, second) => {
    for (const key of [first, second, first, second]) getLock(key);
    expect(warnings()).toEqual([]);
  });

  it('One spelling in two categories is no mistake, nor is one that is always alone', () => {
    for (const key of ['01', '01', '02']) getLock(key, { category: 'zip' });
    getLock('1', { category: 'order' });
    getLock('Job:1');
    getLock('Job:1');
    expect(warnings()).toEqual([]);
  });

  it('Clients that choose keys make it remember no more than a thousand of them, and no long ones', () => {
    for (let n = 0; n < 3_000; n++) getLock(`order:0${n}1`);
    getLock(`order:0${'1'.repeat(300)}`);
    expect(processState().spellings.size).toBe(1_000);
    getLock('order:29991');
    expect(warnings()).toEqual([spelling]);
  });
});
