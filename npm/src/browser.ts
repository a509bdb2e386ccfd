/** What a browser offers. */

import { buildFiles, initialSharedPages } from "setun:builds";
import { estimateOn } from "./estimate.js";
import { importBuild, importGrammars } from "./import-build.js";
import { connectHere, connectWorker } from "./links.js";
import { type Load, loadOn, type Platform } from "./load.js";
import type { Models } from "./models.js";
import { openStreamed } from "./open-model.js";
import { BUILDS, type Build } from "./pick-build.js";
import type { Connect } from "./session.js";
import { withLock } from "./store/locks.js";
import { modelsOn } from "./store/models.js";
import { openStorage } from "./store/open-storage.js";
import { askToPersist } from "./store/quota.js";
import { compileFrom } from "./wasm-instance.js";

const platform: Platform = {
  builds: BUILDS.filter((build) => buildFiles[build] !== undefined),
  initialSharedPages,
  hasWorkers: true,
  baseUrl: () => document.baseURI,
  embeddedModel: () => new URL("../model/stories.safetensors", import.meta.url),
  connect,
  askToPersist: () => void askToPersist(),
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
  return connectHere({
    build: { glue, compile: () => compileFrom(codeUrl) },
    openModel: openStreamed,
    grammars: () => importGrammars(compileFrom),
  });
}
