import * as glue from "wasm:webgpu/setun.js";
import { serve } from "../worker.js";

serve(glue, new URL("./wasm/webgpu/setun_bg.wasm", import.meta.url));
