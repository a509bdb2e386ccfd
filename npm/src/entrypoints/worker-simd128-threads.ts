import * as glue from "wasm:simd128-threads/setun.js";
import { joinPool, startPool } from "wasm:simd128-threads/threads.js";
import { serve } from "../worker.js";

serve(glue, new URL("./wasm/simd128-threads/setun_bg.wasm", import.meta.url), {
  startThreads: (count) => startPool(glue, count),
  joinPool: (message) => joinPool(glue, message),
});
