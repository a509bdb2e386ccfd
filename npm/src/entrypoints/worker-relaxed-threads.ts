import * as glue from "wasm:relaxed-threads/setun.js";
import { joinPool, startPool } from "wasm:relaxed-threads/threads.js";
import { serve } from "../worker.js";

serve(glue, new URL("./wasm/relaxed-threads/setun_bg.wasm", import.meta.url), {
  startThreads: (count) => startPool(glue, count),
  joinPool: (message) => joinPool(glue, message),
});
