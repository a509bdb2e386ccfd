/** The browser platform. */

import { initialSharedPages, version } from "setun:package";
import { assetsAt } from "./assets-url.js";
import { CATALOG } from "./catalog-entries.js";
import type { Connect } from "./connection.js";
import { findShared } from "./cross-origin-page.js";
import { documentBase } from "./document-base.js";
import { environment, WRONG_ENTRY } from "./environment.js";
import { SetunError } from "./errors.js";
import { estimateOn } from "./estimate.js";
import { connectLocal } from "./host-links.js";
import { importBuild, importModule } from "./import-build.js";
import { type Load, loadOn, type Platform } from "./load.js";
import type { Model } from "./model.js";
import type { Models } from "./models.js";
import { NO_MODEL } from "./no-model.js";
import { openStreamed } from "./open-model.js";
import { type BuildList, packageFiles } from "./package-files.js";
import { BUILDS, type Build } from "./pick-build.js";
import { endingReplaced } from "./replaced-modules.js";
import { openStorage, withLock } from "./store/browser-storage.js";
import { modelsOn } from "./store/models.js";
import { requestPersistence } from "./store/quota.js";
import type { DeviceReport } from "./wasm.js";
import { compileFrom } from "./wasm-instance.js";
import { connectWorker } from "./worker-link.js";

/** What an entry point has of the package. */
export interface Parts {
  readonly builds: BuildList;
  /** The address of the story model, if it is there. */
  readonly model?: () => URL;
}

/** The `load` and the `models` of an entry point. */
export function inBrowser({ builds, model }: Parts): { readonly load: Load; readonly models: Models } {
  const platform: Platform = {
    builds: BUILDS.filter((build) => builds[build] !== undefined),
    initialSharedPages,
    hasWorkers: typeof Worker === "function",
    takesAssetsUrl: true,
    baseUrl: documentBase,
    embeddedModel: (assetsUrl) => {
      if (model === undefined) throw new SetunError("bad-option", NO_MODEL);
      return assetsUrl === undefined ? model() : assetsAt(assetsUrl)("model/stories.safetensors");
    },
    connect: (build, inWorker, assetsUrl) => connect(builds, build, inWorker, assetsUrl),
    requestPersistence: () => void requestPersistence(),
    loadTabs: async (request) => (await import("./shared/load-tabs.js")).loadTabs({ ...request, version }),
    withWebnn,
  };
  const models: Models = {
    ...modelsOn({ openStorage, withLock, baseUrl: platform.baseUrl, findShared }),
    catalog: CATALOG,
    estimate: estimateOn(platform),
  };
  if (environment() !== "service-worker") return { load: endingReplaced(loadOn(platform)), models };
  const refuse = async () => {
    throw new SetunError("backend-unavailable", WRONG_ENTRY);
  };
  return { load: refuse, models: { ...models, estimate: refuse } };
}

async function withWebnn(report: DeviceReport, model: Model): Promise<DeviceReport> {
  if ("ml" in navigator) return (await import("./webnn.js")).withWebnn(report, model);
  const reason = "this browser has no WebNN, or only on secure pages (https, localhost)";
  return { devices: [...report.devices, { device: "webnn", level: "", verdict: "absent", reason }] };
}

async function connect(
  builds: BuildList,
  build: Build,
  inWorker: boolean,
  assetsUrl: string | undefined,
): Promise<Connect> {
  const { build: filesOf, grammar, onnx } = packageFiles(builds, assetsUrl);
  const files = filesOf(build);
  if (inWorker && files !== undefined) return connectWorker(files.startWorker);
  const { glue, codeUrl } = await importBuild(build, files);
  return connectLocal({
    build: { glue, compile: () => compileFrom(codeUrl) },
    openModel: openStreamed,
    grammars: () => importModule(grammar, compileFrom),
    onnx: () => importModule(onnx, compileFrom),
  });
}
