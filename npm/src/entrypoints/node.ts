/** For Node 20 and later; the same interface, on the calling thread. */

import type { Load } from "../load.js";
import { load as loadInNode } from "../node.js";

export * from "./public.js";

/** Loads a model; a text without a scheme is a path. Otherwise as in the browser. */
export const load: Load = loadInNode;
