/**
 * Entry point without the WebGPU build, of which a bundler then copies no file.
 *
 * @module setun/cpu
 */

import { buildFiles } from "setun:cpu-builds";
import { model } from "setun:model";
import { inBrowser } from "../browser.js";
import type { Load } from "../load.js";
import type { Models } from "../models.js";

export * from "./public.js";

const browser = inBrowser({ builds: buildFiles, model });

/** Loads a model, as `load` of `setun`, for the CPU. The backend `webgpu` is refused. */
export const load: Load = browser.load;

/** As in `setun`. */
export const models: Models = browser.models;
