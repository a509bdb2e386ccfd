#!/usr/bin/env node
/**
 * Builds the page of `setun serve` as one file without requests to others, which the crate setun-serve embeds.
 *
 *     node ui.mjs            writes it into crates/setun-serve/ui
 *     node ui.mjs --check    fails where what is there is not what the sources build
 */

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";
import { build } from "vite";
import { parts } from "./parts.js";

const FOLDER = new URL("../crates/setun-serve/ui/", import.meta.url);
const PAGE = new URL("ui.html.gz", FOLDER);
const POLICY = new URL("policy.txt", FOLDER);

/** Most bytes of the compressed page. */
const MAX_BYTES = 50_000;

/**
 * Marks of unfinished Markdown are closed by the whole page alone: this page is part of a command, and its bytes are
 * counted.
 */
const withoutRemend = {
  name: "without-remend",
  enforce: /** @type {const} */ ("pre"),
  /** @param {string} source */
  resolveId: (source) => (source === "remend" ? "\0remend" : null),
  /** @param {string} id */
  load: (id) => (id === "\0remend" ? "export default (text) => text;" : null),
};

const { html, policy } = await built();
if (process.argv.includes("--check")) check();
else write();

function check() {
  // Compressed bytes may differ between versions of Node.
  const isSame =
    gunzipSync(readFileSync(PAGE)).toString() === html && readFileSync(POLICY, "utf8") === policy;
  if (isSame) return;
  process.stderr.write("crates/setun-serve/ui differs from what web/ builds: run `node ui.mjs` in web/\n");
  process.exitCode = 1;
}

function write() {
  const page = gzipSync(html, { level: 9 });
  if (page.length > MAX_BYTES)
    throw new Error(`the page has ${page.length} bytes, at most ${MAX_BYTES} may it have`);
  writeFileSync(PAGE, page);
  writeFileSync(POLICY, policy);
  process.stdout.write(`${page.length} bytes, of ${html.length} before compression\n`);
}

/** The page with its script and its style in it, and the policy that allows these alone. */
async function built() {
  const result = await build({
    root: fileURLToPath(new URL(".", import.meta.url)),
    configFile: false,
    logLevel: "warn",
    publicDir: false,
    plugins: [parts(), withoutRemend],
    build: { target: "es2022", write: false, modulePreload: false, rollupOptions: { input: "ui.html" } },
  });
  const [{ output }] = /** @type {import("vite").Rollup.RollupOutput[]} */ ([result].flat());
  const script = output.find((file) => file.type === "chunk")?.code ?? "";
  const assets = new Map(
    output.flatMap((file) => (file.type === "asset" ? [[file.fileName, String(file.source)]] : [])),
  );
  const style = [...assets].find(([name]) => name.endsWith(".css"))?.[1] ?? "";
  // What would end a script's element, or comment it out.
  const safe = script.replaceAll("</script", "<\\/script").replaceAll("<!--", "\\x3C!--");
  const html = (assets.get("ui.html") ?? "")
    .replace(/<script type="module"[^>]*><\/script>\s*/, "")
    .replace(/<link rel="stylesheet"[^>]*>/, () => `<style>${style}</style>`)
    .replace("</body>", () => `<script type="module">${safe}</script></body>`);
  if (/(?:src|href)="(?!data:|#)/.test(html.replace(/<(script|style)[\s\S]*?<\/\1>/g, ""))) {
    throw new Error("the page asks for another file");
  }
  const policy = [
    "default-src 'none'",
    `script-src ${hashOf(safe)}`,
    `style-src ${hashOf(style)}`,
    "img-src data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return { html, policy: policy.join("; ") };
}

/** @param {string} text */
function hashOf(text) {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}
