/** Files of the package: beside its code, where bundlers put them, or at the option `assetsUrl`. */

import { type BuildFiles, buildFiles, grammarFiles } from "setun:builds";
import { assetsAt } from "./assets-url.js";
import { type Build, isThreaded } from "./pick-build.js";
import { startWorker, startWorkerAt } from "./start-worker.js";

/** What a platform needs of the package's files. */
export interface PackageFiles {
  /** The files of a build, if this package has it. */
  build(build: Build): BuildFiles | undefined;
  /** The files of the grammar module. */
  readonly grammar: typeof grammarFiles;
  /** The story model. */
  model(): URL;
}

/** The files as a bundler has placed them, or as the package's folders are served at `assetsUrl`. */
export function packageFiles(assetsUrl: string | undefined): PackageFiles {
  return assetsUrl === undefined ? BESIDE : filesAt(assetsAt(assetsUrl));
}

const BESIDE: PackageFiles = {
  build(build) {
    const files = buildFiles[build];
    return files && { ...files, startWorker: () => startWorker(files.startWorker) };
  },
  grammar: grammarFiles,
  model: () => new URL("../model/stories.safetensors", import.meta.url),
};

function filesAt(at: (path: string) => URL): PackageFiles {
  const glueOf = <Glue>(module: string) => ({
    importGlue: (): Promise<Glue> =>
      import(/* webpackIgnore: true */ /* @vite-ignore */ at(`dist/wasm/${module}/setun.js`).href),
    codeUrl: () => at(`dist/wasm/${module}/setun_bg.wasm`),
  });
  return {
    build: (build) =>
      buildFiles[build] && {
        startWorker: () => startWorkerAt(at(`dist/worker-${build}.js`), `setun-${build}`),
        ...(!isThreaded(build) && glueOf(build)),
      },
    grammar: glueOf("grammar"),
    model: () => at("model/stories.safetensors"),
  };
}
