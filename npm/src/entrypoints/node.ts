/** For Node 20 and later; the same interface, on the calling thread. */

import type { Load } from "../load.js";
import type { Models } from "../models.js";
import { load as loadInNode, models as modelsInNode } from "../node.js";

export * from "./public.js";

/** Loads a model; a text without a scheme is a path. Otherwise as in the browser. */
export const load: Load = loadInNode;

/** As in the browser; Node keeps nothing, so there is nothing in it. */
export const models: Models = modelsInNode;
