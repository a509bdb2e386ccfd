/** Workers that the browser does not start, and why. */

import { failedRequest, isMissing } from "./download/answers.js";
import { SetunError } from "./errors.js";
import { workerAddress } from "./start-worker.js";

/** What a page with a bundler may do. */
export const REMEDY =
  "pass assetsUrl, the address of a copy of the package's folders dist and model (Vite before 8: optimizeDeps: " +
  "{ exclude: ['setun'] })";

/** No worker starts here. A build without threads may run on the page's own thread. */
export class WorkerRefused extends SetunError {}

/** The error, with its one cause. */
export function refused(why: string, cause?: unknown): WorkerRefused {
  const message = `setun's worker could not be loaded: ${why}`;
  return new WorkerRefused("network", message, cause === undefined ? undefined : { cause });
}

/** Why a worker has not started, which its event does not say: the page requests its file. */
export async function whyNotLoaded(worker: Worker): Promise<string> {
  if (globalThis.navigator?.onLine === false) return "this browser is offline";
  const address = workerAddress(worker);
  if (address === undefined) return `the browser gives no reason; ${REMEDY}`;
  const response = await fetch(address, { cache: "no-store" }).catch(() => undefined);
  void response?.body?.cancel();
  if (response === undefined) return `${address}: ${failedRequest(address)}`;
  if (isMissing(response, address) || !response.ok)
    return `${address} is not there (${response.status}): a bundler has left it out; ${REMEDY}`;
  const type = response.headers.get("content-type") ?? "no type";
  if (!/javascript/.test(type)) return `${address} has ${type}, expected text/javascript`;
  return `${address} is there, and the browser gives no reason`;
}
