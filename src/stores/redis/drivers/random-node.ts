/** One of the nodes; undefined if there is none. `chance` returns a number in [0, 1). */
export function randomNode<N>(nodes: readonly N[], chance: () => number): N | undefined {
  return nodes[Math.floor(chance() * nodes.length)];
}
