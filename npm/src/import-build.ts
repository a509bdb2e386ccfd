/** Builds for the calling thread. */

import type { ModuleFiles } from "setun:package";
import { failedRequest } from "./download/answers.js";
import { networkError } from "./download/errors.js";
import { SetunError } from "./errors.js";
import type { PlacedFiles } from "./package-files.js";
import type { Build } from "./pick-build.js";
import type { WasmModule } from "./wasm.js";
import type { StartedModule } from "./wasm-instance.js";

/**
 * The generated JavaScript of a build, and the URL of its code.
 *
 * @throws {SetunError} `backend-unavailable` for a build that needs a worker or is not in this package.
 */
export async function importBuild(
  build: Build,
  files: PlacedFiles | undefined,
): Promise<{ glue: WasmModule; codeUrl: URL }> {
  if (files?.importGlue === undefined || files.codeUrl === undefined) {
    throw new SetunError("backend-unavailable", `the build "${build}" cannot run without a worker`);
  }
  const codeUrl = files.codeUrl();
  return { glue: await imported(files.importGlue, codeUrl), codeUrl };
}

/** A module beside the builds. `compile` reads its code. */
export async function importModule<Glue>(
  files: ModuleFiles<Glue>,
  compile: (code: URL) => Promise<WebAssembly.Module>,
): Promise<StartedModule<Glue>> {
  const codeUrl = files.codeUrl();
  return { glue: await imported(files.importGlue, codeUrl), compile: () => compile(codeUrl) };
}

/** The JavaScript beside `code`. */
async function imported<Glue>(load: () => Promise<Glue>, { href }: URL): Promise<Glue> {
  try {
    return await load();
  } catch (cause) {
    throw networkError(href, `the JavaScript beside it is not there: ${failedRequest(href)}`, cause);
  }
}
