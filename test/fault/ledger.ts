/** How deposits use the fence: not at all, with the write alone, or with the read, too. */
export type Fencing = 'none' | 'write' | 'read and write';

export interface LedgerAccess {
  readonly url: string;
  readonly fencing: Fencing;
}

/**
 * Adds one to the balance in three steps, as code below a lock does: reads, works, writes. Answers whether the ledger took
 * it; what it refuses is not lost, since the caller knows.
 */
export async function deposit(
  { url, fencing }: LedgerAccess,
  fence: number,
  work: () => Promise<void>,
): Promise<boolean> {
  const ofRead = fencing === 'read and write' ? `?fence=${fence}` : '';
  const read = await fetch(`${url}${ofRead}`);
  const balance = Number(await read.text());
  if (!read.ok) return false;
  await work();
  const ofWrite = fencing === 'none' ? '' : `?fence=${fence}`;
  const { ok } = await fetch(`${url}${ofWrite}`, { method: 'PUT', body: String(balance + 1) });
  return ok;
}
