import { type Entry, type Kind, type Rules, violationsOf } from './history.ts';

/** `at kind process/owner`, then a fence and what is left for those that have them. */
function entry(text: string): Entry {
  const [at, kind, who, fence, leftMs] = text.split(' ') as [string, Kind, string, string?, string?];
  const [process, owner] = who.split('/') as [string, string?];
  return {
    at: Number(at),
    kind,
    process,
    ...(owner === undefined ? {} : { owner, hold: owner, key: 'k' }),
    ...(fence === undefined || fence === '-' ? {} : { fence: Number(fence) }),
    ...(leftMs === undefined ? {} : { leftMs: Number(leftMs) }),
  };
}

function broken(lines: readonly string[], rules?: Rules): string[] {
  return violationsOf(lines.map(entry), rules).map(({ rule, text }) => `${rule}: ${text}`);
}

const first = ['0 asked p/a', '1 granted p/a 1 100'];
const firstReleased = [...first, '9 releasing p/a', '10 released p/a'];

it('A hold counts up to its release, even if its lease lasts longer', () => {
  expect(
    broken([...firstReleased, '0 asked q/b', '9 granted q/b 2 100', '20 releasing q/b', '21 released q/b']),
  ).toEqual([]);
});

it('A hold that was never released counts up to the last end that its process knew', () => {
  const lines = [...first, '50 renewed p/a - 100', '160 lost p/a', '140 asked q/b', '155 releasing q/b'];
  expect(broken([...lines, '151 granted q/b 2 100'])).toEqual([]);
  expect(broken([...lines, '149 granted q/b 2 100'])).toEqual([
    'overlap: k: p/a (fence 1) and q/b (fence 2) both held it, for 1.000 ms',
  ]);
});

it('A renewal that arrived after the deadline counts from then on, and not before', () => {
  const lines = [...first, '200 renewed p/a - 100', '260 releasing p/a'];
  expect(broken([...lines, '110 asked q/b', '120 granted q/b 2 50', '130 releasing q/b'])).toEqual([]);
  expect(broken([...lines, '110 asked q/b', '190 granted q/b 2 50', '230 releasing q/b'])).toHaveLength(1);
});

it('A fence that does not rise, or that two owners have, is found; one that an owner has twice is none', () => {
  const next = (fence: number, owner = 'b') =>
    ['11 asked q/b', `12 granted q/${owner} ${fence} 9`, `13 releasing q/${owner}`].map((line) =>
      line.replace('q/b', `q/${owner}`),
    );
  expect(broken([...firstReleased, ...next(2)])).toEqual([]);
  expect(broken([...firstReleased, ...next(1)])).toHaveLength(2);
  expect(broken([...firstReleased, ...next(0)])).toHaveLength(1);
  const inner = (fence: number) => [...first, '90 releasing p/a', `5 granted q/a ${fence} 9`, '6 releasing q/a'];
  expect(broken(inner(1))).toEqual([]);
  expect(broken(inner(2))).toEqual(['fence: k: q/a (fence 2) re-entered p/a (fence 1) with another fence']);
});

it('A hold that is released twice, or never, is found; that of a killed process is none', () => {
  expect(broken([...firstReleased, '11 released p/a'])).toEqual(['release: k: p/a (fence 1) was released 2 times']);
  expect(broken(first)).toEqual(['release: k: p/a (fence 1) was neither released nor lost nor refused']);
  expect(broken([...first, '5 killed p'])).toEqual([]);
});

describe('Branches in a history', () => {
  /** As above, with a path in the place of the owner; a third part of the name is the hold. */
  const branches = (lines: readonly string[]) =>
    violationsOf(
      lines.map((line) => {
        const [at, kind, who = '', fence, leftMs] = line.split(' ');
        const [process, path, hold] = who.split('|');
        return { ...entry(`${at} ${kind} ${process}/${hold} ${fence} ${leftMs}`), owner: path!, hold: hold! };
      }),
    ).map(({ rule }) => rule);
  const holds = (who: string, from: number, fence = 1) => [
    `${from} asked ${who}`,
    `${from} queued ${who}`,
    `${from + 1} granted ${who} ${fence} 100`,
    `${from + 9} releasing ${who} - 0`,
    `${from + 10} released ${who} - 0`,
  ];
  const outer = ['0 asked p|T|o', '1 granted p|T|o 1 1000', '900 releasing p|T|o - 0', '901 released p|T|o - 0'];

  it('A branch may hold a key alongside its ancestors, and not alongside other branches or traces', () => {
    expect(branches([...outer, ...holds('p|T/1/2|i', 5), ...holds('p|T/1/3|j', 30)])).toEqual([]);
    expect(branches([...outer, ...holds('p|T/1/2|i', 5), ...holds('p|T/1/3|j', 8)])).toEqual(['overlap']);
    expect(branches([...outer, ...holds('p|T/1|i', 5), ...holds('q|U|j', 30, 2)])).toContain('overlap');
  });

  it('The branches of a trace may have one fence, and other traces may not have it', () => {
    expect(branches([...holds('p|T/1|i', 5), ...holds('p|T/2|j', 30)])).toEqual([]);
    expect(branches([...holds('p|T/1|i', 5), ...holds('p|U/2|j', 30)])).toEqual(['fence', 'fence']);
  });

  it('A call to another process that waits for what its caller holds is found', () => {
    expect(branches([...outer, ...holds('q|T/1|i', 5)])).toEqual(['nesting']);
  });

  it('A call that may have waited for another branch is not counted as waiting for its caller', () => {
    const before = holds('p|T/2|j', 2);
    expect(branches([...outer, ...before, ...holds('q|T/1|i', 12)])).toEqual([]);
    // That one may still have the key.
    expect(branches([...outer, ...before.slice(0, 2), ...holds('q|T/1|i', 30)])).toEqual(['release']);
  });
});

describe('Readers in a history', () => {
  /** The same lines, all of whose acquires are to read. */
  const read = (lines: readonly string[], rules?: Rules) =>
    violationsOf(
      lines.map((line) => ({ ...entry(line), mode: 'read' as const })),
      rules,
    ).map(({ rule }) => rule);
  const second = (fence: number) => ['2 asked q/b', `3 granted q/b ${fence} 100`, '8 releasing q/b'];

  it('Readers may hold a key at once, and have one fence', () => {
    expect(read([...firstReleased, ...second(1)])).toEqual([]);
    expect(read([...firstReleased, ...second(2)])).toEqual([]);
  });

  it('Readers may not hold a key alongside a writer, nor have its fence', () => {
    const lines = [
      ...firstReleased.map(entry),
      ...second(1).map((line) => ({ ...entry(line), mode: 'read' as const })),
    ];
    expect(violationsOf(lines).map(({ rule }) => rule)).toEqual(['overlap', 'fence']);
    expect(violationsOf(lines, { exclusion: false }).map(({ rule }) => rule)).toEqual(['fence']);
  });

  it('Readers have a greater fence after a writer, and no smaller one after readers', () => {
    const later = (fence: number) => ['11 asked q/b', `12 granted q/b ${fence} 9`, '13 releasing q/b'];
    const afterWriter = (fence: number) =>
      violationsOf([
        ...firstReleased.map(entry),
        ...later(fence).map((line) => ({ ...entry(line), mode: 'read' as const })),
      ]).map(({ rule }) => rule);
    expect([afterWriter(2), afterWriter(1), afterWriter(0)]).toEqual([[], ['fence', 'fence'], ['fence']]);
    expect([read([...firstReleased, ...later(1)]), read([...firstReleased, ...later(0)])]).toEqual([[], ['fence']]);
  });
});

it('A hold that was forced to end counts up to the forcing call, and the next one’s does not', () => {
  const lines = [...first, '99 lost p/a', '15 asked q/b', '20 granted q/b 2 100', '30 releasing q/b'].map(entry);
  const forced = (at: number, fence: number): Entry => ({ at, kind: 'forced', process: 'r', key: 'k', fence });
  expect(violationsOf(lines).map(({ rule }) => rule)).toEqual(['overlap']);
  expect(violationsOf([...lines, forced(18, 1)])).toEqual([]);
  expect(violationsOf([...lines, forced(21, 1)]).map(({ rule }) => rule)).toEqual(['overlap']);
  expect(violationsOf([...lines, forced(19, 9)]).map(({ rule }) => rule)).toEqual(['overlap']);
});

describe('A waiter that was queued after another and served before it', () => {
  const lines = ['0 asked p/a', '1 queued p/a', '2 asked q/b', '3 queued q/b', '4 granted q/b 7 9', '5 releasing q/b'];
  const served = ['6 granted p/a 8 9', '7 releasing p/a'];
  const overtaken = ['order: k: q/b (fence 7) overtook p/a (fence 8)'];

  it('A waiter that was served before an earlier one has overtaken it', () => {
    expect(broken([...lines, ...served])).toEqual(overtaken);
    expect(broken([...lines, '6 refused p/a'])).toHaveLength(1);
    expect(broken([...lines, ...served], { fifo: false })).toEqual([]);
  });

  it('A waiter has not overtaken one that was gone, cut off, served first, or only seemed to be first', () => {
    expect(broken([...lines, '3.5 refused p/a'])).toEqual([]);
    expect(broken([...lines, ...served, '3.5 disturbed p'])).toEqual([]);
    expect(broken([...lines, '6 granted p/a 6 0', '7 releasing p/a'])).toEqual([]);
    expect(broken([...lines, ...served].map((line) => line.replace('1 queued', '2.5 queued')))).toEqual([]);
  });
});

describe('A waiter that is woken late', () => {
  const polls = ['11 polled q/b', '12 polled q/b', '13 polled q/b'];
  const lines = [...firstReleased, '2 asked q/b', '3 queued q/b'];

  it('A waiter that is woken late is found by its polls, whether it was served or gave up', () => {
    expect(broken([...lines, ...polls, '14 granted q/b 2 9', '15 releasing q/b'], { maxPolls: 2 })).toEqual([
      'wake-up: k: q/b (fence 2) needed 3 polls after the release of p/a (fence 1)',
    ]);
    expect(broken([...lines, ...polls, '14 refused q/b'], { maxPolls: 2 })).toHaveLength(1);
    expect(broken([...lines, ...polls.slice(1), '14 refused q/b'], { maxPolls: 2 })).toEqual([]);
  });

  it('A waiter that is woken late is found by the time, unless the clock is not the machine’s', () => {
    expect(broken([...lines, '40 refused q/b'], { wakeMs: 30 })).toEqual([]);
    expect(broken([...lines, '41 refused q/b'], { wakeMs: 30 })).toHaveLength(1);
  });
});

describe('Permits', () => {
  const permit = (text: string, permits = 2): Entry => {
    const read = entry(text);
    return read.kind === 'asked' ? { ...read, mode: 'permit', permits } : read;
  };
  const found = (lines: readonly string[]) => violationsOf(lines.map((line) => permit(line))).map(({ rule }) => rule);
  const held = (who: string, from: number, until: number, fence: number) => [
    `${from - 1} asked ${who}`,
    `${from} granted ${who} ${fence} 100`,
    `${until} releasing ${who}`,
    `${until} released ${who}`,
  ];

  it('So many owners may hold a key at once; one more is found', () => {
    const two = [...held('p/a', 1, 20, 1), ...held('q/b', 2, 20, 2)];
    expect(found(two)).toEqual([]);
    expect(found([...two, ...held('p/c', 20, 30, 3)])).toEqual([]);
    expect(found([...two, ...held('p/c', 19, 30, 3)])).toEqual(['overlap']);
    expect(found([...two, ...held('q/a', 5, 10, 2)])).toEqual([]);
  });

  it('A hold of another kind, or of another number, at the same time is found', () => {
    const others = held('q/b', 5, 10, 2).map(entry);
    const all = (other: readonly Entry[]) =>
      violationsOf([...held('p/a', 1, 20, 1).map((line) => permit(line)), ...other]);
    expect(all(others).map(({ rule }) => rule)).toEqual(['overlap']);
    expect(all(held('q/b', 5, 10, 2).map((line) => permit(line, 3))).map(({ rule }) => rule)).toEqual(['overlap']);
  });

  it('A smaller fence is found if its owner asked when the other had ended, and not if both were there', () => {
    expect(found([...held('p/a', 1, 5, 2), ...held('q/b', 7, 9, 1)])).toEqual(['fence']);
    expect(found([...held('p/a', 1, 5, 2), ...held('q/b', 4, 9, 1)])).toEqual([]);
  });

  it('A force release also takes the holds from before the last fence', () => {
    const crowd = [
      ...held('p/a', 1, 20, 1),
      ...held('p/b', 2, 20, 2),
      ...held('q/c', 10, 20, 3),
      ...held('q/d', 11, 20, 4),
    ];
    const forced: Entry = { at: 9, kind: 'forced', process: 'q', key: 'k', fence: 2 };
    const rules = (extra: readonly Entry[]) =>
      violationsOf([...crowd.map((line) => permit(line)), ...extra]).map(({ rule }) => rule);
    expect(rules([])).toEqual(['overlap', 'overlap']);
    expect(rules([forced])).toEqual([]);
  });
});
