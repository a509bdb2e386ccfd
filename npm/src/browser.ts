/** The browser platform. */

import { buildFiles, initialSharedPages, version } from "setun:builds";
import { CATALOG } from "./catalog-entries.js";
import type { Connect } from "./connection.js";
import { documentBase } from "./document-base.js";
import { estimateOn } from "./estimate.js";
import { connectLocal, connectWorker } from "./host-links.js";
import { importBuild, importGrammars } from "./import-build.js";
import { type Load, loadOn, type Platform } from "./load.js";
import type { Models } from "./models.js";
import { openStreamed } from "./open-model.js";
import { packageFiles } from "./package-files.js";
import { BUILDS, type Build } from "./pick-build.js";
import { openStorage, withLock } from "./store/browser-storage.js";
import { modelsOn } from "./store/models.js";
import { requestPersistence } from "./store/quota.js";
import { compileFrom } from "./wasm-instance.js";

const platform: Platform = {
  builds: BUILDS.filter((build) => buildFiles[build] !== undefined),
  initialSharedPages,
  hasWorkers: typeof Worker === "function",
  takesAssetsUrl: true,
  baseUrl: documentBase,
  embeddedModel: (assetsUrl) => packageFiles(assetsUrl).model(),
  connect,
  requestPersistence: () => void requestPersistence(),
  loadTabs: async (request) => (await import("./shared/load-tabs.js")).loadTabs({ ...request, version }),
};

export const load: Load = loadOn(platform);

export const models: Models = {
  ...modelsOn({ openStorage, withLock, baseUrl: platform.baseUrl }),
  catalog: CATALOG,
  estimate: estimateOn(platform),
};

async function connect(build: Build, inWorker: boolean, assetsUrl: string | undefined): Promise<Connect> {
  const { build: filesOf, grammar } = packageFiles(assetsUrl);
  const files = filesOf(build);
  if (inWorker && files !== undefined) return connectWorker(files.startWorker);
  const { glue, codeUrl } = await importBuild(build, files);
  return connectLocal({
    build: { glue, compile: () => compileFrom(codeUrl) },
    openModel: openStreamed,
    grammars: () => importGrammars(grammar, compileFrom),
  });
}
