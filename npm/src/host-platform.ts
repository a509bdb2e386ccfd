/** Platform of the host: the parts that a browser and Node have of their own. */

import type { GrammarBuild } from "./grammar-cache.js";
import type { OnnxBuild } from "./onnx-files.js";
import type { OpenSource } from "./open-model.js";
import type { Shards } from "./shards.js";
import type { WasmBuild } from "./wasm-instance.js";

/** What differs between a browser and Node. */
export interface HostPlatform {
  readonly build: WasmBuild;
  readonly openModel: OpenSource;
  /** The grammar module. */
  readonly grammars?: () => Promise<GrammarBuild>;
  /** Starts workers that share the weights of a model with this one. */
  readonly startShards?: (count: number) => Promise<Shards>;
  /** The module that reads ONNX files. */
  readonly onnx?: () => Promise<OnnxBuild>;
}
