/** Builds for the calling thread. */

import type { BuildFiles, grammarFiles } from "setun:builds";
import { SetunError } from "./errors.js";
import type { GrammarBuild } from "./grammar-cache.js";
import type { Build } from "./pick-build.js";
import type { WasmModule } from "./wasm.js";

/**
 * The generated JavaScript of a build, and the URL of its code.
 *
 * @throws {SetunError} `backend-unavailable` for a build that needs a worker or is not in this package.
 */
export async function importBuild(
  build: Build,
  files: BuildFiles | undefined,
): Promise<{ glue: WasmModule; codeUrl: URL }> {
  if (files?.importGlue === undefined || files.codeUrl === undefined) {
    throw new SetunError("backend-unavailable", `the build "${build}" cannot run without a worker`);
  }
  return { glue: await files.importGlue(), codeUrl: files.codeUrl() };
}

/** The grammar module. `compile` reads its code. */
export async function importGrammars(
  files: typeof grammarFiles,
  compile: (code: URL) => Promise<WebAssembly.Module>,
): Promise<GrammarBuild> {
  return { glue: await files.importGlue(), compile: () => compile(files.codeUrl()) };
}
