import { openContenders } from '../contenders/index.mjs';
import { nowUs } from '../lib/clock.mjs';
import { serve } from '../lib/serve.mjs';

await serve(async ({ contenders: names, port }) => {
  const contenders = await openContenders(names, { port });
  let giveBack;

  /** Asks for the key; answers with the time of the grant. The hold lasts until `release`. */
  function ask({ contender: name, key }) {
    const contender = contenders.get(name);
    return new Promise((granted, failed) => {
      contender
        .asOwner(async (owner) => {
          const handle = await contender.lock(key, owner);
          const grantedUs = nowUs();
          await new Promise((over) => {
            giveBack = async () => {
              const releasedUs = nowUs();
              await contender.unlock(handle, owner);
              over();
              return releasedUs;
            };
            granted(grantedUs);
          });
        })
        .catch(failed);
    });
  }

  /** Answers with the time just before the release. */
  const release = () => giveBack();

  return { ask, release, close: () => contenders.close() };
});
