import { traceHeaders } from 'reenlock';

/** `fetch` for calls to services of our own: they work for this trace, and re-enter what it holds. */
export function callService(url: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  for (const [name, value] of Object.entries(traceHeaders())) headers.set(name, value);
  return fetch(url, { ...init, headers, redirect: 'error' }); // a redirect would take the headers elsewhere
}
