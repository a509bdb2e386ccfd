/** Entry point for Node without the story model. */

import type { LoadFrom } from "../load.js";
import { NO_MODEL } from "../no-model.js";
import { load as loadAny, SetunError } from "./node.js";

export * from "./node.js";

/** Loads a model, as `load` of `setun`. It needs a source. */
export const load: LoadFrom = async (source, options) => {
  if (source === undefined) throw new SetunError("bad-option", NO_MODEL);
  return loadAny(source, options);
};
