/** `models`: stored models and estimates. */

import type { Estimate } from "./estimate.js";
import type { Models as StoredModels } from "./store/models.js";

/** Stored models of this origin, and estimates of others. */
export interface Models extends StoredModels {
  /**
   * Estimates download size, storage, memory and usable backends of a model.
   *
   * It reads headers and configuration only, and stores nothing. Weights are accurate to a few percent.
   *
   * @throws {SetunError} as `load` for a model that cannot be read.
   */
  readonly estimate: Estimate;
}
