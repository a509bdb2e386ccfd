/**
 * The grammar module for workers.
 *
 * Its JavaScript is part of the worker file, since bundlers refuse workers with dynamic imports. Its large
 * WebAssembly file is fetched with the first grammar.
 */

import * as glue from "wasm:grammar/setun.js";
import type { GrammarBuild } from "./grammar-cache.js";
import { compileFrom } from "./wasm-instance.js";

export const grammarBuild = async (): Promise<GrammarBuild> => ({
  glue,
  compile: () => compileFrom(new URL("./wasm/grammar/setun_bg.wasm", import.meta.url)),
});
