// A store as its author would write it, and the harness for its tests. BROKEN=1 makes it one that grants every acquire.
const { setTimeout: sleep } = require('node:timers/promises');
const { MemoryStore } = require('reenlock');

class CountingStore {
  constructor() {
    this.inner = new MemoryStore();
    this.acquires = 0;
    this.capabilities = this.inner.capabilities;
    this.edges = this.inner.edges;
  }

  acquire(request, terms) {
    this.acquires += 1;
    const asked = process.env.BROKEN === '1' ? { ...request, owner: 'everybody' } : request;
    return this.inner.acquire(asked, terms);
  }

  renew(request, terms) {
    return this.inner.renew(request, terms);
  }

  release(request, terms) {
    return this.inner.release(request, terms);
  }

  transfer(from, to, terms) {
    return this.inner.transfer(from, to, terms);
  }

  inspect(id) {
    return this.inner.inspect(id);
  }

  forceRelease(id, fence) {
    return this.inner.forceRelease(id, fence);
  }

  list(request) {
    return this.inner.list(request);
  }

  subscribe(name, listener, options) {
    return this.inner.subscribe(name, listener, options);
  }
}

// The clock of a store in memory begins at a whole millisecond.
exports.harness = {
  create: async () => new CountingStore(),
  elapse: (ms) => sleep(ms + 1),
  losses: [{ name: 'a new store took its place', happen: () => sleep(3).then(() => new CountingStore()) }],
  faults: [],
};
