/** Missing files and failed requests in words: the answers of servers that have something else. */

/** Addresses that were answered with an HTML page. */
const pages = new Set<string>();

const ADVICE =
  "; the server answered with an HTML page, as some do for every unknown address: check the path";

/** Whether a file does not exist. Servers of single-page applications answer unknown addresses with an HTML page. */
export function isMissing(response: Response, address: string): boolean {
  const isPage = response.ok && (response.headers.get("content-type") ?? "").startsWith("text/html");
  if (isPage) pages.add(address);
  else pages.delete(address);
  return isPage || response.status === 404 || response.status === 410;
}

/** Advice for an address without a file; empty unless it was answered with a page. */
export function pageAdvice(address: string): string {
  return pages.has(address) ? ADVICE : "";
}

/** Whether a page may not read all headers of an address: other origins hide `Content-Encoding`, for one. */
export function hidesHeaders(address: string): boolean {
  // Node has no origin.
  const origin: string | undefined = globalThis.origin;
  return origin !== undefined && new URL(address).origin !== origin;
}

/** Why a request has failed, as far as the page may know. */
export function failedRequest(address: string): string {
  if (globalThis.navigator?.onLine === false) return "the request failed, this browser is offline";
  if (!hidesHeaders(address)) return "the request failed";
  const { origin } = globalThis;
  return (
    "the request failed: the server cannot be reached, or does not allow this page to read its files; it must send " +
    `"Access-Control-Allow-Origin: ${origin}" (or "*"), or the files must be on ${origin}`
  );
}
