import { systemClock } from '../../../core/base/clock.ts';

/** One of the nodes; undefined if there is none. */
export function randomNode<N>(nodes: readonly N[]): N | undefined {
  return nodes[Math.floor(systemClock.jitter() * nodes.length)];
}
