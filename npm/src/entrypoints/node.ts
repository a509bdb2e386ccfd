/** Entry point for Node 20 and later. The model runs on the calling thread. */

import type { Load } from "../load.js";
import type { Models } from "../models.js";
import { load as loadInNode, models as modelsInNode } from "../node.js";

export * from "./public.js";

/** Loads a model. A source without a scheme is a path; otherwise as in the browser. */
export const load: Load = loadInNode;

/** As in the browser. Node stores nothing, so the list is empty. */
export const models: Models = modelsInNode;
