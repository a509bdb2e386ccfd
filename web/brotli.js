/** Compressed copies of what is built, and a preview that sends them, as a site's server would. */

import { createReadStream, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { extname, join, normalize } from "node:path";
import { brotliCompressSync } from "node:zlib";

const TYPES = new Map([
  [".html", "text/html"],
  [".css", "text/css"],
  [".js", "text/javascript"],
  [".wasm", "application/wasm"],
]);

/** @returns {import("vite").Plugin} */
export function brotli() {
  let folder = "dist";
  /** @type {import("node:http").OutgoingHttpHeaders} */
  let headers = {};
  return {
    name: "brotli",
    configResolved: ({ root, build, preview }) => {
      folder = join(root, build.outDir);
      headers = preview.headers;
    },
    closeBundle: { order: "post", sequential: true, handler: () => compressAll(folder) },
    configurePreviewServer: ({ middlewares }) => {
      middlewares.use((request, response, next) => {
        const path = compressedFile(folder, request);
        if (path !== undefined) return send(path, headers, response);
        // Weights hardly compress, and without compression their length is known before.
        request.headers["accept-encoding"] = "identity";
        next();
      });
    },
  };
}

/** @param {string} folder */
function compressAll(folder) {
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const path = join(folder, name);
    if (TYPES.has(extname(path)) && statSync(path).isFile()) {
      writeFileSync(`${path}.br`, brotliCompressSync(readFileSync(path)));
    }
  }
}

/**
 * The compressed copy of what is requested, if there is one and the browser takes it.
 * @param {string} folder @param {import("node:http").IncomingMessage} request
 */
function compressedFile(folder, request) {
  const { pathname } = new URL(request.url ?? "/", "http://localhost");
  const path = `${join(folder, normalize(pathname.endsWith("/") ? `${pathname}index.html` : pathname))}.br`;
  const accepted = /\bbr\b/.test(String(request.headers["accept-encoding"] ?? ""));
  return accepted && TYPES.has(originalType(path)) && existsSync(path) ? path : undefined;
}

/** @param {string} path @param {import("node:http").OutgoingHttpHeaders} headers @param {import("node:http").ServerResponse} response */
function send(path, headers, response) {
  response.writeHead(200, {
    ...headers,
    "content-type": TYPES.get(originalType(path)),
    "content-encoding": "br",
    "content-length": statSync(path).size,
    vary: "accept-encoding",
    // Names of assets hold a hash of their contents.
    "cache-control": path.includes("assets") ? "max-age=31536000, immutable" : "no-cache",
  });
  createReadStream(path).pipe(response);
}

/** @param {string} compressed */
function originalType(compressed) {
  return extname(compressed.slice(0, -".br".length));
}
