/** Events of the service worker that isolates pages. */

import { addIsolationHeaders, isPolicy } from "./headers.js";

/** The parts of a service worker's global object that are used; the page's library declares none. */
export interface WorkerScope {
  readonly location: { readonly href: string; readonly origin: string };
  skipWaiting(): unknown;
  addEventListener(type: "install", listener: () => void): void;
  addEventListener(type: "fetch", listener: (event: FetchLike) => void): void;
}

interface FetchLike {
  readonly request: Request;
  respondWith(response: Promise<Response>): void;
}

/** Adds the headers, of the policy that the script's address names. */
export function isolateResponses(scope: WorkerScope): void {
  const named = new URL(scope.location.href).searchParams.get("policy");
  const policy = isPolicy(named) ? named : undefined;
  scope.addEventListener("install", () => scope.skipWaiting());
  scope.addEventListener("fetch", (event) => {
    if (!needsHeaders(event.request, scope.location.origin)) return;
    event.respondWith(fetch(event.request).then((response) => addIsolationHeaders(response, policy)));
  });
}

/**
 * Pages, frames and the files of workers. The browser answers all other requests itself: downloads, ranges, streams, and
 * what is loaded from other origins, which a `fetch` of the worker's would request with cookies.
 */
function needsHeaders({ mode, destination, cache, url }: Request, origin: string): boolean {
  // The history and developer tools make such requests, which `fetch` refuses.
  if (cache === "only-if-cached" && mode !== "same-origin") return false;
  const isWorker = destination === "worker" || destination === "sharedworker";
  return (mode === "navigate" || isWorker) && new URL(url).origin === origin;
}
