/**
 * What a framework puts between a request or a response and Node's own prototype of it, `nodes`: of several, the one next to
 * Node's, which all applications and sub-applications share. Undefined where there is none, or none of Node's.
 *
 * Express sets the prototype of each request and response. Each property of its own that an object gets after that costs it
 * a hidden class that it shares with no other, 1.6 kB here (V8 11 to 14). What is for all of them therefore stands there.
 */
export function frameworkPrototype(object: object, nodes: object): object | undefined {
  let found: object | undefined;
  for (let next = Object.getPrototypeOf(object); next !== nodes; next = Object.getPrototypeOf(next)) {
    if (next === null) return undefined;
    found = next;
  }
  return found;
}
