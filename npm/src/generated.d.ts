/** Modules that exist only after the build: the generated WebAssembly bindings, and the list of builds there are. */

declare module "wasm:*/setun.js" {
  const init: import("./wasm.js").WasmModule["default"];
  export default init;
  export const Loader: import("./wasm.js").WasmModule["Loader"];
  /** Threaded builds only. */
  export function initThreadPool(count: number): Promise<void>;
}

declare module "wasm:grammar/setun.js" {
  const init: import("./grammar-cache.js").GrammarModule["default"];
  export default init;
  export const Vocabulary: import("./grammar-cache.js").GrammarModule["Vocabulary"];
  export const Grammar: import("./grammar-cache.js").GrammarModule["Grammar"];
}

declare module "wasm:*/threads.js" {
  export function joinPool(glue: unknown, message: import("./worker.js").ThreadMessage): Promise<void>;
}

declare module "setun:builds" {
  import type { GrammarModule } from "./grammar-cache.js";
  import type { Build } from "./pick-build.js";
  import type { WasmModule } from "./wasm.js";

  /** Where one build's parts are. */
  export interface BuildFiles {
    startWorker(): Worker;
    /** Absent from threaded builds, which run in workers only. */
    importGlue?(): Promise<WasmModule>;
    codeUrl?(): URL;
  }

  /** The builds of this package; a threaded one may be missing. */
  export const buildFiles: Partial<Record<Build, BuildFiles>>;
  /** Where the module of grammars is. */
  export const grammarFiles: { importGlue(): Promise<GrammarModule>; codeUrl(): URL };
  /** Pages of shared memory that any threaded build starts with; 0 if there is none. */
  export const initialSharedPages: number;
}
