import * as glue from "wasm:simd128/setun.js";
import { serve } from "../worker.js";

serve(glue, new URL("./wasm/simd128/setun_bg.wasm", import.meta.url));
