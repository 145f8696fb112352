/** A branch as one text: its trace id, and its path below that. */
export function pathOf(of: { readonly traceId: string | undefined; readonly branch: string }): string;
export function pathOf(
  of: { readonly traceId: string | undefined; readonly branch: string } | undefined,
): string | undefined;
export function pathOf(
  of: { readonly traceId: string | undefined; readonly branch: string } | undefined,
): string | undefined {
  if (of === undefined) return undefined;
  return of.branch === '' ? of.traceId : `${of.traceId}/${of.branch}`;
}
