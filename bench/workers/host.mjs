import { openContenders } from '../contenders/index.mjs';
import { serve } from '../lib/serve.mjs';

/** Runs one of bench/loads on the contenders of these names, in this process. */
await serve(async ({ load, contenders: names, ports }) => {
  const { run } = await import(`../loads/${load}.mjs`);
  const contenders = await openContenders(names, ports);
  return {
    run: ({ contender, ...params }) => run(contenders.get(contender), params, ports),
    close: () => contenders.close(),
  };
});
