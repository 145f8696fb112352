/** Node's own request or response: Fastify's objects have it in `raw`, Express's objects are it. */
export function rawOf<T>(ofPlatform: unknown): T {
  return (ofPlatform as { readonly raw?: T }).raw ?? (ofPlatform as T);
}
