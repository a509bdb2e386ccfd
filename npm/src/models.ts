/** What is kept of downloaded models, and what others would take. */

import type { Estimate } from "./estimate.js";
import type { Models as KeptModels } from "./store/models.js";

/** The models that this origin keeps, and those that it could. */
export interface Models extends KeptModels {
  /**
   * What a model takes of the network, the browser's storage and the memory, and what can run it here. Reads headers and
   * configuration alone, and keeps nothing.
   *
   * @throws {SetunError} as `load` for a model that cannot be read.
   */
  readonly estimate: Estimate;
}
