import type { Quorum } from './quorum.ts';
import { type QuorumNode, started } from './quorum-node.ts';
import { quorumError } from './quorum-tally.ts';
import type { StoreListener, StoreMessage, Unsubscribe } from './store.ts';

/** One process's stream: what the nodes' streams say together. */
export async function subscribeQuorum(quorum: Quorum, process: string, listener: StoreListener): Promise<Unsubscribe> {
  let isEnded = false;
  const streams = quorum.nodes.map((node) =>
    started(() =>
      node.store.subscribe(
        process,
        (message) => {
          if (!isEnded) hear(quorum, node, message, listener);
        },
        { freed: true },
      ),
    ),
  );
  const ends: Unsubscribe[] = [];
  const end = async (): Promise<void> => {
    isEnded = true;
    await Promise.allSettled(ends.map((unsubscribe) => unsubscribe()));
  };
  for (const stream of streams) {
    // One that is in force only after the end is ended then; nobody waits for that.
    stream.then(
      async (unsubscribe) => {
        ends.push(unsubscribe);
        if (isEnded) await unsubscribe();
      },
      () => undefined, // Told below.
    );
  }
  await inForce(quorum, streams, end);
  // One that fails beside a quorum leaves messages to the others.
  for (const stream of streams) stream.catch((error: Error) => isEnded || listener({ kind: 'fault', error }));
  return end;
}

/** Resolves when a quorum of the streams are in force; rejects, and ends them all, when too many failed. */
function inForce(
  { size, spare }: Quorum,
  streams: readonly Promise<Unsubscribe>[],
  end: () => Promise<void>,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const outcomes: ({ kind: 'answered' } | { kind: 'unreachable'; error: unknown } | undefined)[] = streams.map(
      () => undefined,
    );
    const count = (kind: 'answered' | 'unreachable'): number =>
      outcomes.filter((outcome) => outcome?.kind === kind).length;
    for (const [index, stream] of streams.entries()) {
      stream.then(
        () => {
          outcomes[index] = { kind: 'answered' };
          if (count('answered') >= size) resolve();
        },
        (error: unknown) => {
          outcomes[index] = { kind: 'unreachable', error };
          if (count('unreachable') !== spare + 1) return;
          void end();
          reject(quorumError('subscribe', 'unknown', outcomes));
        },
      );
    }
  });
}

function hear({ holds, spare }: Quorum, node: QuorumNode, message: StoreMessage, listener: StoreListener): void {
  // Nothing is ever queued on a node.
  if (message.kind === 'granted') return;
  if (message.kind === 'lost') {
    const hold = holds.find(message.holdId);
    if (hold === undefined) return;
    hold.lostOn.add(node);
    // Told once, when no quorum can be left.
    if (hold.lostOn.size !== spare + 1) return;
  }
  listener(message);
}
