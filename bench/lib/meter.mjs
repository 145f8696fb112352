/**
 * Runs `work`, and adds what it used to its figures: `wallMs` in all, and for each of the `count` things that it did
 * `clientUs`, the processor time of the worker processes, `serverUs`, that of the lock's server, and `commandsUs`, the part of
 * it within commands (Redis only).
 */
export async function metered({ workers, server, contender }, work) {
  const used = async () => sum(await Promise.all(workers.map((worker) => worker.call('usedUs'))));
  const timed = async () => {
    const usedBefore = await used();
    const from = performance.now();
    const figures = await work();
    const wallMs = performance.now() - from;
    return { figures, wallMs, clientUs: (await used()) - usedBefore };
  };
  if (server === undefined) return each(await timed());
  const { result, serverUs, commandsUs } = await server.usedBy(contender, timed);
  return each({ ...result, serverUs, commandsUs });
}

/** The columns of what `metered` adds, for a table. */
export function meterColumns(thing) {
  return {
    clientUs: `client CPU µs a ${thing}`,
    serverUs: `server CPU µs a ${thing}`,
    commandsUs: 'of it in commands µs',
  };
}

function each({ figures, wallMs, ...totals }) {
  const used = Object.entries(totals).map(([name, us]) => [name, us / figures.count]);
  return { ...figures, wallMs, ...Object.fromEntries(used) };
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}
