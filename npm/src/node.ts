/** The Node platform: no workers, no threads, files from disk. */

import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { buildFiles } from "setun:builds";
import { grammarFiles, onnxFiles } from "setun:package";
import { CATALOG } from "./catalog-entries.js";
import type { Connect } from "./connection.js";
import { DiskFiles } from "./disk-files.js";
import { estimateOn } from "./estimate.js";
import { connectLocal } from "./host-links.js";
import { importBuild, importModule } from "./import-build.js";
import { type Load, loadOn, type Platform } from "./load.js";
import type { Models } from "./models.js";
import { resolveInNode } from "./node-names.js";
import { openStreamed, StreamedModel } from "./open-model.js";
import { BUILDS, type Build } from "./pick-build.js";
import { modelsOn } from "./store/models.js";
import { compiled } from "./wasm-instance.js";

const platform: Platform = {
  builds: BUILDS.filter((build) => buildFiles[build] !== undefined),
  initialSharedPages: 0,
  hasWorkers: false,
  baseUrl: () => pathToFileURL(`${process.cwd()}/`).href,
  resolveName: resolveInNode,
  embeddedModel: () => new URL("../model/stories.safetensors", import.meta.url),
  connect,
};

export const load: Load = loadOn(platform);

/** Node stores nothing: a path names a model on disk. */
export const models: Models = {
  ...modelsOn({
    openStorage: async () => undefined,
    withLock: (_model, _signal, work) => work(),
    baseUrl: () => "file:///",
  }),
  catalog: CATALOG,
  estimate: estimateOn(platform),
};

async function connect(build: Build): Promise<Connect> {
  const { glue, codeUrl } = await importBuild(build, buildFiles[build]);
  const compile = (code: URL) => compiled(code, async () => WebAssembly.compile(await readFile(code)));
  return connectLocal({
    build: { glue, compile: () => compile(codeUrl) },
    grammars: () => importModule(grammarFiles, compile),
    onnx: () => importModule(onnxFiles, compile),
    openModel: async (source, fetchOptions, signal) =>
      source.kind === "url" && source.url.startsWith("file:")
        ? new StreamedModel(source, () => new DiskFiles(source))
        : openStreamed(source, fetchOptions, signal),
  });
}
