import * as glue from "wasm:relaxed/setun.js";
import { serve } from "../worker.js";

serve(glue, new URL("./wasm/relaxed/setun_bg.wasm", import.meta.url));
