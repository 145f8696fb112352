import { AsyncLocalStorage } from 'node:async_hooks';
import { openContenders } from '../contenders/index.mjs';
import { nowUs } from '../lib/clock.mjs';
import { serve } from '../lib/serve.mjs';

await serve(async ({ contenders: names, ports }) => {
  const contenders = await openContenders(names, ports);
  let current;

  /** Acquires a key as a new owner, which lives until `release`. */
  function hold({ contender: name, key }) {
    const contender = contenders.get(name);
    return new Promise((held, failed) => {
      contender
        .asOwner(async (owner) => {
          const handles = [await contender.lock(key, owner)];
          const as = AsyncLocalStorage.snapshot();
          await new Promise((over) => {
            current = { contender, owner, handles, as, over };
            held();
          });
        })
        .catch(failed);
    });
  }

  /** Acquires another key for that owner; returns how long that took, and the code of the error that it ended with. */
  async function wait({ key }) {
    const { contender, owner, handles, as } = current;
    const fromUs = nowUs();
    try {
      handles.push(await as(() => contender.lock(key, owner)));
      return { waitedUs: nowUs() - fromUs };
    } catch ({ code }) {
      return { waitedUs: nowUs() - fromUs, code };
    }
  }

  async function release() {
    const { contender, owner, handles, over } = current;
    for (const handle of handles.toReversed()) await contender.unlock(handle, owner);
    over();
  }

  return { hold, wait, release, close: () => contenders.close() };
});
