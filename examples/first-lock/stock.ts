import { getLock } from 'reenlock';

const stock = new Map<string, number>(); // your database
const pause = () => new Promise((resolve) => setTimeout(resolve, 5));

/** Below the guard it re-enters the lock. From anywhere else it waits for its turn. */
export function takeUnit(id: string): Promise<number> {
  return getLock(`order:${id}`).run(async () => {
    const units = stock.get(id) ?? 10;
    await pause(); // without the lock, others read the same number
    stock.set(id, units - 1);
    return units - 1;
  });
}
