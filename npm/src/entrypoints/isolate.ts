/**
 * Entry point for pages on hosts that do not send the headers of cross-origin isolation, which threads need.
 *
 * @module setun/isolate
 */

import { type IsolateOptions, type Isolation, isolatePage } from "../isolate/isolate.js";

export { addIsolationHeaders, type IsolationPolicy } from "../isolate/headers.js";
export type { IsolateOptions, Isolation } from "../isolate/isolate.js";
export type { IsolationObstacle, Unsupported } from "../isolate/obstacles.js";

/**
 * Makes the page cross-origin isolated: registers a service worker that adds the headers, and loads the page again.
 *
 * It is loaded again once, or once for each policy that a browser ignores, and never without end. A page that is
 * isolated is left as it is.
 */
export function isolate(options: IsolateOptions = {}): Promise<Isolation> {
  return isolatePage(globalThis, options);
}
