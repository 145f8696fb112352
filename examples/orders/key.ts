/** The one name of an order's lock. Guards, services and jobs all ask here: two spellings would be two locks. */
export function orderKey(id: string): string {
  return `order:${id}`;
}
