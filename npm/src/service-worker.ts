/** The platform of service workers: one build, no dynamic import, no worker. */

import * as grammarGlue from "wasm:grammar/setun.js";
import * as onnxGlue from "wasm:onnx/setun.js";
import * as glue from "wasm:simd128/setun.js";
import { assetsAt } from "./assets-url.js";
import { documentBase } from "./document-base.js";
import { connectLocal } from "./host-links.js";
import { type Load, loadOn } from "./load.js";
import { openStreamed } from "./open-model.js";
import { compileFrom } from "./wasm-instance.js";

interface Files {
  readonly code: URL;
  readonly grammar: URL;
  readonly onnx: URL;
  readonly model: URL;
}

function filesAt(assetsUrl: string | undefined): Files {
  if (assetsUrl === undefined) {
    return {
      code: new URL("./wasm/simd128/setun_bg.wasm", import.meta.url),
      grammar: new URL("./wasm/grammar/setun_bg.wasm", import.meta.url),
      onnx: new URL("./wasm/onnx/setun_bg.wasm", import.meta.url),
      model: new URL("../model/stories.safetensors", import.meta.url),
    };
  }
  const at = assetsAt(assetsUrl);
  return {
    code: at("dist/wasm/simd128/setun_bg.wasm"),
    grammar: at("dist/wasm/grammar/setun_bg.wasm"),
    onnx: at("dist/wasm/onnx/setun_bg.wasm"),
    model: at("model/stories.safetensors"),
  };
}

export const load: Load = loadOn({
  builds: ["simd128"],
  initialSharedPages: 0,
  hasWorkers: false,
  takesAssetsUrl: true,
  baseUrl: documentBase,
  embeddedModel: (assetsUrl) => filesAt(assetsUrl).model,
  connect: async (_build, _inWorker, assetsUrl) => {
    const { code, grammar, onnx } = filesAt(assetsUrl);
    return connectLocal({
      build: { glue, compile: () => compileFrom(code) },
      openModel: openStreamed,
      grammars: async () => ({ glue: grammarGlue, compile: () => compileFrom(grammar) }),
      onnx: async () => ({ glue: onnxGlue, compile: () => compileFrom(onnx) }),
    });
  },
});
