import { defineConfig } from "vite";
import { brotli } from "./brotli.js";
import { comparison } from "./comparison.js";
import { offline } from "./offline.js";
import { parity } from "./parity.js";
import { parts } from "./parts.js";

/** Cross-origin isolation gives the page threads; it works without, too: `SETUN_ISOLATED=0`. */
const headers =
  process.env.SETUN_ISOLATED === "0"
    ? {}
    : { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };

/** Where the page will be served, with a slash at the end: links to its picture need it. */
const address = process.env.SETUN_PAGE_URL ?? "./";

/** @type {import("vite").Plugin} */
const pictureAddress = {
  name: "picture-address",
  transformIndexHtml: { order: "pre", handler: (html) => html.replaceAll("%SETUN_PAGE_URL%", address) },
};

export default defineConfig({
  // Relative addresses: the built page runs from any folder of any site.
  base: "./",
  server: { headers },
  preview: { headers },
  build: { target: "es2022" },
  plugins: [pictureAddress, parts(), parity(), comparison(), offline(), brotli()],
});
