/** For browsers, with a bundler or without. */

import { load as loadInBrowser } from "../browser.js";
import type { Load } from "../load.js";

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
