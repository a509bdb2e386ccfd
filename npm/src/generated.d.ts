/** Types of modules that the build generates: the WebAssembly bindings and the list of builds. */

declare module "wasm:*/setun.js" {
  const init: import("./wasm.js").WasmModule["default"];
  export default init;
  export const Loader: import("./wasm.js").WasmModule["Loader"];
}

declare module "wasm:grammar/setun.js" {
  const init: import("./grammar-cache.js").GrammarModule["default"];
  export default init;
  export const Vocabulary: import("./grammar-cache.js").GrammarModule["Vocabulary"];
  export const Grammar: import("./grammar-cache.js").GrammarModule["Grammar"];
}

declare module "wasm:onnx/setun.js" {
  const init: import("./onnx-files.js").OnnxModule["default"];
  export default init;
  export const OnnxReader: import("./onnx-files.js").OnnxModule["OnnxReader"];
}

declare module "wasm:*/threads.js" {
  export function startPool(glue: unknown, count: number): Promise<void>;
  export function joinPool(glue: unknown, message: import("./worker.js").ThreadMessage): Promise<void>;
}

declare module "setun:builds" {
  import type { Build } from "./pick-build.js";
  import type { WasmModule } from "./wasm.js";

  /** Files of one build. */
  export interface BuildFiles {
    startWorker(): Worker;
    /** Absent in threaded builds, which need a worker. */
    importGlue?(): Promise<WasmModule>;
    codeUrl?(): URL;
  }

  /** The builds of this package. */
  export const buildFiles: Partial<Record<Build, BuildFiles>>;
}

declare module "setun:cpu-builds" {
  /** Those without a GPU. */
  export const buildFiles: typeof import("setun:builds").buildFiles;
}

declare module "setun:model" {
  /** The address of the story model, beside the importing file. */
  export const model: () => URL;
}

declare module "setun:package" {
  import type { GrammarModule } from "./grammar-cache.js";
  import type { OnnxModule } from "./onnx-files.js";

  /** Files of a module beside the builds. */
  export interface ModuleFiles<Glue> {
    importGlue(): Promise<Glue>;
    codeUrl(): URL;
  }

  export const grammarFiles: ModuleFiles<GrammarModule>;
  export const onnxFiles: ModuleFiles<OnnxModule>;
  /** Version of this package. */
  export const version: string;
  /** Initial pages of shared memory, enough for any threaded build; 0 without one. */
  export const initialSharedPages: number;
}
