import { defineConfig } from "vite";
import { brotli } from "./brotli.js";
import { offline } from "./offline.js";
import { parity } from "./parity.js";
import { parts } from "./parts.js";

/** Cross-origin isolation gives the page threads; it works without, too: `SETUN_ISOLATED=0`. */
const headers =
  process.env.SETUN_ISOLATED === "0"
    ? {}
    : { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };

export default defineConfig({
  // Relative addresses: the built page runs from any folder of any site.
  base: "./",
  server: { headers },
  preview: { headers },
  build: { target: "es2022" },
  plugins: [parts(), parity(), offline(), brotli()],
});
