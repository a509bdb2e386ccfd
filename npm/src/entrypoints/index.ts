/**
 * Entry point for browsers, with or without a bundler.
 *
 * @module setun
 */

import { buildFiles } from "setun:builds";
import { model } from "setun:model";
import { inBrowser } from "../browser.js";
import type { Load } from "../load.js";
import type { Models } from "../models.js";

export * from "./public.js";

const browser = inBrowser({ builds: buildFiles, model });

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
export const load: Load = browser.load;

/**
 * The stored models of this origin, and estimates of others.
 *
 * @example
 * ```ts
 * for (const model of await models.list()) if (!model.complete) await models.delete(model);
 * ```
 */
export const models: Models = browser.models;
