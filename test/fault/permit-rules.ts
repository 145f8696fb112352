/** What the rules about permits need to know of a hold. Times are CLOCK_MONOTONIC, ms. */
export interface PermitLife {
  readonly owner: string;
  readonly fence: number;
  readonly permits: number | undefined;
  readonly asked: number;
  /** When its process certainly held, in order; none if it was not granted. */
  readonly spans: readonly { readonly from: number; readonly until: number }[];
}

/** The moments at which more owners held one key than it has permits, with the number of owners. */
export function crowdsOf(lives: readonly PermitLife[]): { readonly at: number; readonly owners: number }[] {
  const spans = lives.flatMap(({ owner, permits, spans: own }) => own.map((span) => ({ owner, permits, ...span })));
  const crowds: { at: number; owners: number }[] = [];
  let active: typeof spans = [];
  for (const next of spans.toSorted((a, b) => a.from - b.from)) {
    active = [...active.filter(({ until }) => until > next.from), next];
    const owners = new Set(active.map(({ owner }) => owner)).size;
    if (owners > (next.permits ?? 1)) crowds.push({ at: next.from, owners });
  }
  return crowds;
}

/**
 * Pairs of owners of which the second asked when the first had ended, and got a smaller fence. Of those that held at the same
 * time nothing is said: a process may hear of a grant after others have come and gone.
 */
export function fallsOf<L extends PermitLife>(lives: readonly L[]): { readonly before: L; readonly after: L }[] {
  const held = lives.filter(({ spans }) => spans.length > 0);
  const ended = held.toSorted((a, b) => endOf(a) - endOf(b));
  const falls: { before: L; after: L }[] = [];
  let greatest: L | undefined;
  let over = 0;
  for (const after of held.toSorted((a, b) => a.asked - b.asked)) {
    for (; over < ended.length && endOf(ended[over]!) <= after.asked; over++) {
      if (ended[over]!.fence > (greatest?.fence ?? 0)) greatest = ended[over];
    }
    if (greatest !== undefined && after.fence < greatest.fence) falls.push({ before: greatest, after });
  }
  return falls;
}

function endOf({ spans }: PermitLife): number {
  return spans.at(-1)!.until;
}
