/** A small static server that can isolate its pages, restrict them, misbehave on request, and say what it was asked. */

import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".json": "application/json",
  ".wasm": "application/wasm",
  ".css": "text/css",
};

const ISOLATION = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
};

/** The policy that the package promises to work under. */
const STRICT_POLICY = {
  "content-security-policy": "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'",
};

/** As content delivery networks answer. */
const SHARED = { "access-control-allow-origin": "*", "cross-origin-resource-policy": "cross-origin" };

/**
 * Serves `root` on a free port of this machine.
 *
 * With `isolated: "pages"` pages alone have the headers, and their files lack them. With `shared` pages of other origins may use the files, with `cached` browsers keep them. `answers` maps a path to a function that answers instead of the file; `models` answers all under `/models/`.
 * @param {{ root: string, isolated?: boolean | "pages", strict?: boolean, shared?: boolean, cached?: boolean, policy?: string, models?: import("./faulty-server.js").FaultyServer,
 *   answers?: Record<string, (request: import("node:http").IncomingMessage, response: import("node:http").ServerResponse) => void> }} options
 */
export async function startServer({
  root,
  isolated = false,
  strict = false,
  shared = false,
  cached = false,
  policy,
  models,
  answers = {},
}) {
  /** @type {string[]} */
  const requests = [];
  const server = createServer(async (request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? "/", "http://localhost").pathname);
    requests.push(path);
    const headers = {
      ...((isolated === "pages" ? isPage(path) : isolated) && ISOLATION),
      ...(strict && STRICT_POLICY),
      ...(policy && { "content-security-policy": policy }),
      ...(shared && SHARED),
    };
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    if (answers[path]) answers[path](request, response);
    else if (models !== undefined && path.startsWith("/models/")) await models.answer(request, response);
    else await sendFile(join(root, normalize(path)), response, cached ? "max-age=3600" : "no-store");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const address = /** @type {import("node:net").AddressInfo} */ (server.address());
  return { url: `http://127.0.0.1:${address.port}`, requests, stop: () => stopServer(server) };
}

/** @param {string} path */
function isPage(path) {
  return path.endsWith(".html");
}

/** @param {string} path @param {import("node:http").ServerResponse} response @param {string} caching */
async function sendFile(path, response, caching) {
  const info = await stat(path).catch(() => undefined);
  if (info?.isFile() !== true) return response.writeHead(404).end();
  const type = TYPES[/** @type {keyof TYPES} */ (extname(path))] ?? "application/octet-stream";
  response.writeHead(200, { "content-type": type, "content-length": info.size, "cache-control": caching });
  return createReadStream(path).pipe(response);
}

/** @param {import("node:http").Server} server */
function stopServer(server) {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(resolve));
}
