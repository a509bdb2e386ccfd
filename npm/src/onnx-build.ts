/**
 * The module of the ONNX reader for workers. Its JavaScript is part of the worker file, as that of the grammar module.
 * Its WebAssembly file is fetched with the first ONNX file.
 */

import * as glue from "wasm:onnx/setun.js";
import type { OnnxBuild } from "./onnx-files.js";
import { compileFrom } from "./wasm-instance.js";

export const onnxBuild = async (): Promise<OnnxBuild> => ({
  glue,
  compile: () => compileFrom(new URL("./wasm/onnx/setun_bg.wasm", import.meta.url)),
});
