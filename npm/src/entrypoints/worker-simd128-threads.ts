import * as glue from "wasm:simd128-threads/setun.js";
import { joinPool } from "wasm:simd128-threads/threads.js";
import { serve } from "../worker.js";

serve(glue, new URL("./wasm/simd128-threads/setun_bg.wasm", import.meta.url), {
  startThreads: (count) => glue.initThreadPool(count),
  joinPool: (message) => joinPool(glue, message),
});
