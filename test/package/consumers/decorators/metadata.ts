// What reflect-metadata does for the frameworks that are built on it: by object and property, and along prototypes.
const store = new WeakMap<object, Map<string, unknown>>();

export function defineMetadata(key: string, value: unknown, target: object, name?: string | symbol): void {
  const own = store.get(target) ?? new Map<string, unknown>();
  store.set(target, own.set(`${key} ${String(name)}`, value));
}

export function getMetadata(key: string, target: object | null, name?: string | symbol): unknown {
  if (target === null) return undefined;
  const id = `${key} ${String(name)}`;
  return store.get(target)?.has(id)
    ? store.get(target)?.get(id)
    : getMetadata(key, Object.getPrototypeOf(target), name);
}

// What the compiler calls with the types that it writes down.
Object.assign(Reflect, {
  metadata: (key: string, value: unknown) => (target: object, name?: string | symbol) =>
    defineMetadata(key, value, target, name),
});
