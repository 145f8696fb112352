import { openContenders } from '../contenders/index.mjs';
import { nowUs } from '../lib/clock.mjs';
import { serve } from '../lib/serve.mjs';

await serve(async ({ contenders: names, ports }) => {
  const contenders = await openContenders(names, ports);
  let releaseHold;

  /** Acquires the key; returns the time of the grant. The hold lasts until `release`. */
  function acquire({ contender: name, key }) {
    const contender = contenders.get(name);
    return new Promise((granted, failed) => {
      contender
        .asOwner(async (owner) => {
          const handle = await contender.lock(key, owner);
          const grantedUs = nowUs();
          await new Promise((over) => {
            releaseHold = async () => {
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

  /** Returns the time just before the release. */
  const release = () => releaseHold();

  return { acquire, release, close: () => contenders.close() };
});
