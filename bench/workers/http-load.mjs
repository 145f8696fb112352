import autocannon from 'autocannon';
import { nowUs } from '../lib/clock.mjs';
import { serve } from '../lib/serve.mjs';
import { percentile } from '../lib/stats.mjs';

let lastId = 0;

await serve(() => ({ post, close: () => undefined }));

/** Posts so many requests over so many keep-alive connections, each to an id of its own under the URL. */
async function post({ url, connections, amount }) {
  const { pathname } = new URL(url);
  const tookMs = [];
  const load = autocannon({
    url,
    connections,
    amount,
    sampleInt: 50,
    requests: [{ method: 'POST', setupRequest: (request) => ({ ...request, path: `${pathname}/${nextId()}` }) }],
  });
  let fromUs;
  let toUs;
  load.on('start', () => {
    fromUs = nowUs();
  });
  load.on('response', (_client, _status, _bytes, responseMs) => {
    tookMs.push(responseMs);
    toUs = nowUs();
  });
  const { non2xx, errors } = await load;
  if (non2xx + errors > 0) throw new Error(`${non2xx} refused, ${errors} failed of ${amount}`);
  return {
    count: amount,
    perSecond: (tookMs.length * 1e6) / (toUs - fromUs),
    p50Us: percentile(tookMs, 0.5) * 1000,
    p99Us: percentile(tookMs, 0.99) * 1000,
  };
}

function nextId() {
  lastId += 1;
  return lastId;
}
