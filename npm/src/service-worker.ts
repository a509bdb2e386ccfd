/** The platform of service workers: one build, no dynamic import, no worker. */

import * as glue from "wasm:simd128/setun.js";
import { documentBase } from "./document-base.js";
import { grammarBuild } from "./grammar-build.js";
import { connectLocal } from "./host-links.js";
import { type Load, loadOn } from "./load.js";
import { openStreamed } from "./open-model.js";
import { compileFrom } from "./wasm-instance.js";

const codeUrl = (): URL => new URL("./wasm/simd128/setun_bg.wasm", import.meta.url);

export const load: Load = loadOn({
  builds: ["simd128"],
  initialSharedPages: 0,
  hasWorkers: false,
  baseUrl: documentBase,
  embeddedModel: () => new URL("../model/stories.safetensors", import.meta.url),
  connect: async () =>
    connectLocal({
      build: { glue, compile: () => compileFrom(codeUrl()) },
      openModel: openStreamed,
      grammars: grammarBuild,
    }),
});
