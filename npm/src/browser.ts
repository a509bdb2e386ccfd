/** The browser platform. */

import { buildFiles, initialSharedPages } from "setun:builds";
import type { Connect } from "./connection.js";
import { estimateOn } from "./estimate.js";
import { connectLocal, connectWorker } from "./host-links.js";
import { importBuild, importGrammars } from "./import-build.js";
import { type Load, loadOn, type Platform } from "./load.js";
import type { Models } from "./models.js";
import { openStreamed } from "./open-model.js";
import { BUILDS, type Build } from "./pick-build.js";
import { openStorage, withLock } from "./store/browser-storage.js";
import { modelsOn } from "./store/models.js";
import { requestPersistence } from "./store/quota.js";
import { compileFrom } from "./wasm-instance.js";

const platform: Platform = {
  builds: BUILDS.filter((build) => buildFiles[build] !== undefined),
  initialSharedPages,
  hasWorkers: true,
  baseUrl: () => document.baseURI,
  embeddedModel: () => new URL("../model/stories.safetensors", import.meta.url),
  connect,
  requestPersistence: () => void requestPersistence(),
};

export const load: Load = loadOn(platform);

export const models: Models = {
  ...modelsOn({ openStorage, withLock, baseUrl: platform.baseUrl }),
  estimate: estimateOn(platform),
};

async function connect(build: Build, inWorker: boolean): Promise<Connect> {
  const files = buildFiles[build];
  if (inWorker && files !== undefined) return connectWorker(files.startWorker);
  const { glue, codeUrl } = await importBuild(build);
  return connectLocal({
    build: { glue, compile: () => compileFrom(codeUrl) },
    openModel: openStreamed,
    grammars: () => importGrammars(compileFrom),
  });
}
