export type Method = (this: unknown, ...args: unknown[]) => unknown;

/** Wraps a method. Nest, and decorators above, find the method's metadata, name and parameters on the wrapper. */
export function wrapMethod(descriptor: PropertyDescriptor, around: (method: Method) => Method): void {
  const method: unknown = descriptor.value;
  if (typeof method !== 'function') return;
  const wrapper = around(method as Method);
  for (const key of Reflect.getMetadataKeys(method)) {
    Reflect.defineMetadata(key, Reflect.getMetadata(key, method), wrapper);
  }
  for (const name of ['name', 'length'] as const) {
    Object.defineProperty(wrapper, name, { value: method[name], configurable: true });
  }
  descriptor.value = wrapper;
}
