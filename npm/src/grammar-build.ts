/**
 * The module of grammars for workers. Its JavaScript is part of theirs, as bundlers refuse workers that import more while
 * they run; its code, which is large, is fetched with the first form.
 */

import * as glue from "wasm:grammar/setun.js";
import type { GrammarBuild } from "./grammar-cache.js";
import { compileFrom } from "./wasm-instance.js";

export const grammarBuild = async (): Promise<GrammarBuild> => ({
  glue,
  compile: () => compileFrom(new URL("./wasm/grammar/setun_bg.wasm", import.meta.url)),
});
