/** Entry point for browsers, with or without a bundler. */

import { load as loadInBrowser, models as modelsInBrowser } from "../browser.js";
import type { Load } from "../load.js";
import type { Models } from "../models.js";

export * from "./public.js";

/**
 * Loads a model from a URL, a Hub name, files or bytes; without a source, the story model of this package.
 *
 * Errors are listed in `docs/errors.md`. An aborted signal rejects with its reason.
 *
 * @example
 * ```ts
 * const model = await load("https://example.org/models/bitnet/");
 * ```
 */
export const load: Load = loadInBrowser;

/**
 * The stored models of this origin, and estimates of others.
 *
 * @example
 * ```ts
 * for (const model of await models.list()) if (!model.complete) await models.delete(model);
 * ```
 */
export const models: Models = modelsInBrowser;
