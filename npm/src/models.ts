/** `models`: the catalog, stored models and estimates. */

import type { CatalogEntry } from "./catalog.js";
import type { Estimate } from "./estimate.js";
import type { Models as StoredModels } from "./store/models.js";

/** Stored models of this origin, public models, and estimates of others. */
export interface Models extends StoredModels {
  /** Public models. `load`, `estimate`, `has` and `delete` take their short names. */
  readonly catalog: readonly CatalogEntry[];
  /**
   * Estimates download size, storage, memory and usable backends of a model.
   *
   * It reads headers and configuration only, and stores nothing. Weights are accurate to a few percent.
   *
   * @throws {SetunError} as `load` for a model that cannot be read.
   */
  readonly estimate: Estimate;
}
