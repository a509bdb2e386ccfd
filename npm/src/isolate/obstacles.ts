/** Reasons why a page is not isolated, and remedies. */

/** The reasons in words. */
export const MESSAGES = {
  "no-page": () => "there is no page here: call isolate in a page",
  extension: () =>
    "pages of an extension are isolated by cross_origin_embedder_policy and cross_origin_opener_policy in its manifest",
  insecure: () => "service workers need https, or http on localhost",
  framed: () => "this page is in a frame, which the outermost page isolates: call isolate there",
  "no-service-worker": () => "this browser, window or frame has no service workers",
  "no-storage": () => "without the session's storage nothing tells a first load from a second",
  "other-service-worker": (script: string) =>
    `the pages have the service worker ${script}: call addIsolationHeaders in it, and pass its registration to isolate`,
  "service-worker-failed": (cause: string) =>
    `the service worker is not there: serve dist/isolate-worker.js of setun at its address (${cause})`,
  scope: (scope: string) =>
    `the service worker is responsible for ${scope} alone: serve it from the page's folder or one above`,
  "not-isolated": () =>
    "the page was loaded again and is not isolated: its service worker adds no headers, or the browser ignores them",
} as const;

/**
 * Why a page is not isolated.
 *
 * - `"no-page"`: the code runs in Node or in a worker.
 * - `"extension"`: a page of a browser extension, whose manifest isolates it.
 * - `"insecure"`: neither https nor localhost, or a file.
 * - `"framed"`: the page is in a frame, and the browser has no `Document-Isolation-Policy`.
 * - `"no-service-worker"`: the browser has none, as in some private windows and sandboxed frames.
 * - `"no-storage"`: there is no session storage, so a reload could repeat.
 * - `"other-service-worker"`: the pages have a service worker already.
 * - `"service-worker-failed"`: its file is missing, or the browser refuses it.
 * - `"scope"`: its file is in a folder beside the page or below it.
 * - `"not-isolated"`: the page was loaded again, in vain.
 */
export type IsolationObstacle = keyof typeof MESSAGES;

/** An outcome of `isolate`: the page is as it was. */
export interface Unsupported {
  readonly status: "unsupported";
  readonly reason: IsolationObstacle;
  /** The reason in words, with a remedy. */
  readonly message: string;
}

/** The outcome with its message, and a detail of it. */
export function unsupported(reason: IsolationObstacle, detail = ""): Unsupported {
  return { status: "unsupported", reason, message: MESSAGES[reason](detail) };
}
