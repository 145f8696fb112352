/**
 * Adds one to the balance of the ledger at `url` in three steps, as code below a lock does: reads, works, writes. The fence
 * goes with the read and the write. Returns whether the ledger took it; what it refuses is not lost, since the caller knows.
 */
export async function deposit(url: string, fence: number, work: () => Promise<void>): Promise<boolean> {
  const fenced = `${url}?fence=${fence}`;
  const read = await fetch(fenced);
  const balance = Number(await read.text());
  if (!read.ok) return false;
  await work();
  const { ok } = await fetch(fenced, { method: 'PUT', body: String(balance + 1) });
  return ok;
}
