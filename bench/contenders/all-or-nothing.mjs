/**
 * One queue for all keys, in this process: a caller is granted all of its keys at once, as soon as none of them is held or
 * wanted by a caller before it. The shortest waits that are still first in, first out.
 */
export function create() {
  const held = new Set();
  const waiting = [];

  function grantAll() {
    const wanted = new Set(held);
    for (const waiter of [...waiting]) {
      const isNext = waiter.keys.every((key) => !wanted.has(key));
      for (const key of waiter.keys) wanted.add(key);
      if (!isNext) continue;
      waiting.splice(waiting.indexOf(waiter), 1);
      for (const key of waiter.keys) held.add(key);
      waiter.grant(waiter.keys);
    }
  }

  return {
    async setup() {},
    lockAll: (keys) =>
      new Promise((grant) => {
        waiting.push({ keys, grant });
        grantAll();
      }),
    async unlockAll(keys) {
      for (const key of keys) held.delete(key);
      grantAll();
    },
    async close() {},
  };
}
