import type { Timer } from '../../core/base/clock.ts';
import { inBackground } from '../../core/base/safely.ts';
import type { StoreListener, StoreMessage, Unsubscribe } from '../../core/model/store.ts';
import { quorumError } from './errors.ts';
import { originalId, type QuorumNode } from './node.ts';
import type { Quorum } from './quorum.ts';

/** The pause before the next try on a node that refused the stream. */
const retryMs = 1_000;

/** Subscribes a process on every node and joins their streams. Retries a node that fails until the end. */
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
    const listen: StoreListener = (message) => {
      if (!isEnded) onMessage(quorum, node, message, listener);
    };
    const unsubscribe = await node.store.subscribe(process, listen, { freed: true });
    ends.push(unsubscribe);
    // A stream that is in force only after the end is ended then. No caller waits for that.
    if (isEnded) await unsubscribe();
  };
  const keepJoined = (node: QuorumNode, stream: Promise<void>): void => {
    stream.catch((error: Error) => {
      if (isEnded) return;
      listener({ kind: 'fault', error });
      pauses.set(
        node,
        clock.after(retryMs, () => keepJoined(node, join(node))),
      );
    });
  };
  const streams = new Map(nodes.map((node) => [node, join(node)]));
  const joined = await joinResults(quorum, streams);
  if (count(joined, 'replied') < quorum.quorumSize) {
    inBackground(end());
    throw quorumError('subscribe', 'unknown', joined);
  }
  // While one node fails, the messages of the others suffice.
  for (const [node, stream] of streams) keepJoined(node, stream);
  return end;
}

type JoinResult = { readonly kind: 'replied' } | { readonly kind: 'unreachable'; readonly error: unknown };
type JoinResults = readonly (JoinResult | undefined)[];

/** The results of the streams once a quorum of them is in force, or too many have failed. */
function joinResults(quorum: Quorum, streams: ReadonlyMap<QuorumNode, Promise<void>>): Promise<JoinResults> {
  return quorum.ask<JoinResult>(
    async (node) => {
      try {
        await streams.get(node);
        return { kind: 'replied' };
      } catch (error) {
        return { kind: 'unreachable', error };
      }
    },
    (soFar) => {
      const isDecided =
        count(soFar, 'replied') >= quorum.quorumSize || count(soFar, 'unreachable') > quorum.maxFailures;
      return isDecided ? 'final' : 'open';
    },
  );
}

function count(results: JoinResults, kind: JoinResult['kind']): number {
  return results.filter((result) => result?.kind === kind).length;
}

function onMessage(
  { holds, maxFailures }: Quorum,
  node: QuorumNode,
  message: StoreMessage,
  listener: StoreListener,
): void {
  // No waiter is ever queued on a node.
  if (message.kind === 'granted') return;
  if (message.kind === 'lost') {
    const holdId = originalId(message.holdId);
    const hold = holds.find(holdId);
    if (hold === undefined) return;
    hold.lostOn.add(node);
    // Reported once, when no quorum can be left.
    if (hold.lostOn.size === maxFailures + 1) listener({ kind: 'lost', holdId });
  } else listener(message);
}
