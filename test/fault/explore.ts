/** A model: its first world, and what may follow each of its worlds. */
export interface Model<W> {
  readonly first: W;
  /** The steps that happen in the end, if nothing goes wrong any more. */
  fairSteps(world: W): Iterable<W>;
  /** What may go wrong. */
  mishaps(world: W): Iterable<W>;
  /** Whether everybody was served. */
  isDone(world: W): boolean;
  /** What was broken on the way to a world. */
  brokenIn(world: W): readonly string[];
  /** What is broken if there is a world from which fair steps do not serve everybody. */
  readonly unserved: string;
}

/** How many worlds there are, and what is broken in any of them. */
export interface Explored {
  readonly worlds: number;
  readonly broken: ReadonlySet<string>;
}

/**
 * Goes through every world that there is; from each, without anything going wrong any more, everybody must be served. Ends
 * early when `until` is broken.
 */
export function explore<W>(
  { first, fairSteps, mishaps, isDone, brokenIn, unserved }: Model<W>,
  until?: string,
): Explored {
  const broken = new Set<string>();
  const numbers = new Map<string, number>();
  /** By world: those from which a fair step leads to it. */
  const before: number[][] = [];
  const done: number[] = [];
  const open: W[] = [];
  const numberOf = (world: W): number => {
    const name = JSON.stringify(world);
    let number = numbers.get(name);
    if (number === undefined) {
      number = before.push([]) - 1;
      numbers.set(name, number);
      open.push(world);
    }
    return number;
  };
  numberOf(first);
  for (let world = open.pop(); world !== undefined; world = open.pop()) {
    const number = numberOf(world);
    for (const what of brokenIn(world)) broken.add(what);
    if (until !== undefined && broken.has(until)) return { worlds: before.length, broken };
    if (isDone(world)) done.push(number);
    for (const next of fairSteps(world)) before[numberOf(next)]?.push(number);
    for (const next of mishaps(world)) numberOf(next);
  }
  const served = new Set<number>();
  for (let number = done.pop(); number !== undefined; number = done.pop()) {
    if (served.has(number)) continue;
    served.add(number);
    done.push(...(before[number] ?? []));
  }
  if (served.size < before.length) broken.add(unserved);
  return { worlds: before.length, broken };
}
