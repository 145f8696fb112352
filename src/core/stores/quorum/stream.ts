import type { Timer } from '../../base/clock.ts';
import type { StoreListener, StoreMessage, Unsubscribe } from '../../model/store.ts';
import { quorumError } from './errors.ts';
import { callersId, type QuorumNode } from './node.ts';
import type { Quorum } from './quorum.ts';

/** After how long a node that failed to take up the stream is asked again. */
const retryMs = 1_000;

/** One process's stream: what the nodes' streams say together. A node that fails is asked again until the end. */
export async function subscribeQuorum(quorum: Quorum, process: string, listener: StoreListener): Promise<Unsubscribe> {
  const { nodes, clock } = quorum;
  let isEnded = false;
  const ends: Unsubscribe[] = [];
  const pauses = new Map<QuorumNode, Timer>();
  const end = async (): Promise<void> => {
    isEnded = true;
    for (const pause of pauses.values()) pause.cancel();
    await Promise.allSettled(ends.map((unsubscribe) => unsubscribe()));
  };
  const join = async (node: QuorumNode): Promise<void> => {
    const hearing: StoreListener = (message) => {
      if (!isEnded) hear(quorum, node, message, listener);
    };
    const unsubscribe = await node.store.subscribe(process, hearing, { freed: true });
    ends.push(unsubscribe);
    // One that is in force only after the end is ended then; nobody waits for that.
    if (isEnded) await unsubscribe();
  };
  const insist = (node: QuorumNode, stream: Promise<void>): void => {
    stream.catch((error: Error) => {
      if (isEnded) return;
      listener({ kind: 'fault', error });
      pauses.set(
        node,
        clock.after(retryMs, () => insist(node, join(node))),
      );
    });
  };
  const streams = new Map(nodes.map((node) => [node, join(node)]));
  const joined = await outcomes(quorum, streams);
  if (count(joined, 'answered') < quorum.size) {
    void end();
    throw quorumError('subscribe', 'unknown', joined);
  }
  // One that fails beside a quorum leaves messages to the others, meanwhile.
  for (const [node, stream] of streams) insist(node, stream);
  return end;
}

type Deferred = { readonly kind: 'answered' } | { readonly kind: 'unreachable'; readonly error: unknown };
type Outcomes = readonly (Deferred | undefined)[];

/** What has come of the streams when a quorum of them are in force, or too many have failed. */
function outcomes(quorum: Quorum, streams: ReadonlyMap<QuorumNode, Promise<void>>): Promise<Outcomes> {
  return quorum.ask<Deferred>(
    async (node) => {
      try {
        await streams.get(node);
        return { kind: 'answered' };
      } catch (error) {
        return { kind: 'unreachable', error };
      }
    },
    (soFar) => {
      const isDecided = count(soFar, 'answered') >= quorum.size || count(soFar, 'unreachable') > quorum.spare;
      return isDecided ? 'final' : 'open';
    },
  );
}

function count(outcomes: Outcomes, kind: Deferred['kind']): number {
  return outcomes.filter((outcome) => outcome?.kind === kind).length;
}

function hear({ holds, spare }: Quorum, node: QuorumNode, message: StoreMessage, listener: StoreListener): void {
  // Nothing is ever queued on a node.
  if (message.kind === 'granted') return;
  if (message.kind === 'lost') {
    const holdId = callersId(message.holdId);
    const hold = holds.find(holdId);
    if (hold === undefined) return;
    hold.lostOn.add(node);
    // Told once, when no quorum can be left.
    if (hold.lostOn.size === spare + 1) listener({ kind: 'lost', holdId });
  } else listener(message);
}
