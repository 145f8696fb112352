// One process in which some modules import the package and others require it: it must be one package.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import * as imported from 'reenlock';

const require = createRequire(import.meta.url);
for (const name of ['reenlock', 'reenlock/redis', 'reenlock/express', 'reenlock/koa']) {
  const required = require(name);
  const module = await import(name);
  const names = Object.keys(required);
  assert.ok(names.length > 0);
  for (const key of names) assert.equal(module[key], required[key], `${name}: ${key}`);
}

const required = require('reenlock');
const locks = imported.createLocks({ store: new imported.MemoryStore() });
await imported.runInTrace(
  async () => {
    const { traceId } = imported.currentTrace();
    assert.equal(required.currentTrace().traceId, traceId);
    await imported.getLock('order:42').run(async (outer) => {
      await required.getLock('order:42').run((inner) => assert.equal(inner.fence, outer.fence));
    });
  },
  { locks },
);
await locks.close();
console.log('ok');
