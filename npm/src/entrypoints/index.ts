/** For browsers, with a bundler or without. */

import { load as loadInBrowser, models as modelsInBrowser } from "../browser.js";
import type { Load } from "../load.js";
import type { Models } from "../models.js";

export * from "./public.js";

/**
 * Loads a model: without a source the small story model of this package, else from an address, files or bytes.
 *
 * @throws {SetunError} see `docs/errors.md`. An aborted signal rejects with its reason.
 *
 * @example
 * ```ts
 * const model = await load("https://example.org/models/bitnet/");
 * ```
 */
export const load: Load = loadInBrowser;

/**
 * What this origin keeps of downloaded models.
 *
 * @example
 * ```ts
 * for (const model of await models.list()) if (!model.complete) await models.delete(model);
 * ```
 */
export const models: Models = modelsInBrowser;
