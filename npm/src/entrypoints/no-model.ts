/**
 * Entry point without the story model, which a bundler then does not copy.
 *
 * @module setun/no-model
 */

import { buildFiles } from "setun:builds";
import { inBrowser } from "../browser.js";
import type { LoadFrom } from "../load.js";
import type { Models } from "../models.js";

export * from "./public.js";

const browser = inBrowser({ builds: buildFiles });

/** Loads a model, as `load` of `setun`. It needs a source. */
export const load: LoadFrom = browser.load;

/** As in `setun`. */
export const models: Models = browser.models;
