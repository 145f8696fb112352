const dots = 20;

/**
 * Measures every contender once a round, one after the other, `rounds` times. Each round starts with another contender,
 * so that noise from outside, and from the neighbour before, hits all alike. Returns name → the figures of its rounds.
 */
export async function runRounds(scenario, { names, rounds, ...context }) {
  const figures = new Map(names.map((name) => [name, []]));
  const session = await scenario.open(names, context);
  try {
    for (let round = 0; round < rounds; round += 1) {
      for (const name of rotated(names, round)) {
        const key = `${scenario.name}:${name.replaceAll(' ', '-')}:${round}`;
        figures.get(name).push(await scenario.measure(session, name, { ...context, key }));
      }
      if (round % Math.ceil(rounds / dots) === 0) process.stderr.write('.');
    }
  } finally {
    process.stderr.write(' ');
    await session.close();
  }
  return figures;
}

function rotated(names, by) {
  const first = by % names.length;
  return [...names.slice(first), ...names.slice(0, first)];
}
