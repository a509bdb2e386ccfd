/** Files of the package: beside its code, where bundlers put them, or at the option `assetsUrl`. */

import type { BuildFiles } from "setun:builds";
import { grammarFiles, onnxFiles } from "setun:package";
import { assetsAt } from "./assets-url.js";
import { type Build, isThreaded } from "./pick-build.js";
import { startWorker, startWorkerAt } from "./start-worker.js";
import type { StartWorker } from "./worker-link.js";

/** What a platform needs of the package's files. */
export interface PackageFiles {
  /** The files of a build, if this package has it. */
  build(build: Build): PlacedFiles | undefined;
  /** The files of the grammar module. */
  readonly grammar: typeof grammarFiles;
  /** Those of the module that reads ONNX files. */
  readonly onnx: typeof onnxFiles;
}

/** The files of a build, and how its worker starts. */
export type PlacedFiles = Omit<BuildFiles, "startWorker"> & { readonly startWorker: StartWorker };

/** The files of the builds of an entry point. */
export type BuildList = Partial<Record<Build, BuildFiles>>;

/** The files as a bundler has placed them, or as the package's folders are served at `assetsUrl`. */
export function packageFiles(builds: BuildList, assetsUrl: string | undefined): PackageFiles {
  return assetsUrl === undefined ? filesBeside(builds) : filesAt(builds, assetsAt(assetsUrl));
}

function filesBeside(builds: BuildList): PackageFiles {
  const build = (build: Build): PlacedFiles | undefined => {
    const files = builds[build];
    return files && { ...files, startWorker: (imported) => startWorker(files.startWorker, imported) };
  };
  return { build, grammar: grammarFiles, onnx: onnxFiles };
}

function filesAt(builds: BuildList, at: (path: string) => URL): PackageFiles {
  const glueOf = <Glue>(module: string) => ({
    importGlue: (): Promise<Glue> =>
      import(/* webpackIgnore: true */ /* @vite-ignore */ at(`dist/wasm/${module}/setun.js`).href),
    codeUrl: () => at(`dist/wasm/${module}/setun_bg.wasm`),
  });
  return {
    build: (build) =>
      builds[build] && {
        startWorker: (imported) => startWorkerAt(at(`dist/worker-${build}.js`), `setun-${build}`, imported),
        ...(!isThreaded(build) && glueOf(build)),
      },
    grammar: glueOf("grammar"),
    onnx: glueOf("onnx"),
  };
}
