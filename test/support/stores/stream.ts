import { EventEmitter, once } from 'node:events';
import type { StoreListener, StoreMessage } from '../../../src/core/model/store.ts';

/** Hears a stream; what came can be awaited, from the first message on that was not awaited yet. */
export class Stream {
  readonly messages: StoreMessage[] = [];
  readonly #arrivals = new EventEmitter();

  readonly listen: StoreListener = (message) => {
    this.messages.push(message);
    this.#arrivals.emit('message');
  };

  /** The next message of a kind; what came before it is dropped. */
  async next<K extends StoreMessage['kind']>(kind: K): Promise<Extract<StoreMessage, { kind: K }>> {
    while (true) {
      for (let message = this.messages.shift(); message; message = this.messages.shift()) {
        if (message.kind === kind) return message as Extract<StoreMessage, { kind: K }>;
      }
      await once(this.#arrivals, 'message');
    }
  }
}
