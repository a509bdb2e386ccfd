/**
 * Entry point for service workers, which can neither start a worker nor import on demand.
 *
 * @module setun/service-worker
 */

import type { Load } from "../load.js";
import { load as loadHere } from "../service-worker.js";

export * from "./public.js";

/**
 * Loads a model on the calling thread, with the build that every browser runs. Downloads are not stored.
 *
 * A service worker is registered with `{ type: "module" }`, unless a bundler makes it a classic script.
 */
export const load: Load = loadHere;
