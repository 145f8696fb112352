import { isCluster, type RedisOrCluster } from './cluster/cluster.ts';

/** The connections that the calls of a client travel on, to be compared with what they were. */
export interface RedisConnections {
  /** As they are now; undefined where there is none yet. */
  now(): unknown;
  /**
   * Whether they are the same as then: none was lost or came in between. A call that was sent then and is answered now was
   * answered by every server that it was sent to, redirections included, and no copy of it is on its way. Of one that had
   * to wait for the first connection this is not said: that may have been lost, and the call sent again on the next one.
   */
  areStill(then: unknown): boolean;
}

/** A client of one server has one connection at a time. In a cluster any call may go to any node. */
export function connectionsOf(client: RedisOrCluster): RedisConnections {
  if (!isCluster(client)) {
    return { now: () => client.stream, areStill: (then) => client.stream === then };
  }
  const now = (): readonly unknown[] => {
    const list: unknown[] = [];
    // The node as well: one that was replaced by another has no stream at first, as it had none.
    for (const node of client.nodes()) list.push(node, node.stream);
    return list;
  };
  const areStill = (then: unknown): boolean => {
    const before = then as readonly unknown[];
    const current = now();
    return current.length === before.length && current.every((part, i) => part === before[i]);
  };
  return { now, areStill };
}
