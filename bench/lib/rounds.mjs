import { orderOf } from './order.mjs';

const dots = 20;

/** Over how many openings two builds are compared: the place that the system gives to a process changes its figures. */
export const openingsOfBuilds = 4;

/**
 * Measures every contender once a round, one after the other, `rounds` times; see `orderOf` for their order. The rounds are
 * spread over so many openings, each with new processes. Returns name → the figures of its rounds.
 */
export async function runRounds(scenario, { names, rounds, openings, ...context }) {
  const figures = new Map(names.map((name) => [name, []]));
  const newOpeningEvery = Math.ceil(rounds / openings);
  let session;
  try {
    for (let round = 0; round < rounds; round += 1) {
      if (round % newOpeningEvery === 0) {
        await session?.close();
        session = await scenario.open(names, context);
      }
      for (const name of orderOf(names, round)) {
        const key = `${scenario.name}:${name.replaceAll(' ', '-')}:${round}`;
        figures.get(name).push(await scenario.measure(session, name, { ...context, key }));
      }
      if (round % Math.ceil(rounds / dots) === 0) process.stderr.write('.');
    }
  } finally {
    process.stderr.write(' ');
    await session?.close();
  }
  return figures;
}
