import { tracingChannel } from 'node:diagnostics_channel';
import { EventEmitter } from 'node:events';

/** No lock: what a cycle of this package asks before it tells somebody something. Nobody listens. */
export function create() {
  const emitter = new EventEmitter();
  const channel = tracingChannel('nobody:listens');
  const isHeard = (event) => emitter.listenerCount(event) > 0;
  return {
    async setup() {},
    async cycle() {
      return channel.hasSubscribers || isHeard('granted') || isHeard('released');
    },
    async close() {},
  };
}
