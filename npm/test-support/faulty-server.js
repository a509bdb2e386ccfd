/** A file server that fails on request and records its requests. */

import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { gzipSync } from "node:zlib";

/** A commit's name. */
export const COMMIT = "0123456789abcdef0123456789abcdef01234567";

/** Starts one on a free port of this machine. @param {import("./faulty-server.js").Manners} manners */
export async function startFaultyServer(manners = {}) {
  const server = new FaultyServer(manners);
  await server.start();
  return server;
}

class FaultyServer {
  /** @type {Map<string, { bytes: Uint8Array, etag: string | undefined }>} */
  #files = new Map();
  /** @type {{ path: string, start: number | undefined, isOfAll: boolean, left: number, act: import("./faulty-server.js").Act }[]} */
  #rules = [];
  /** Bytes of files where connections are still to break. @type {{ path: string, at: number }[]} */
  #cuts = [];
  #server = createServer((request, response) => this.answer(request, response));
  /** @type {import("./faulty-server.js").Asked[]} */
  requests = [];
  /** Bytes of bodies that were sent. */
  sent = 0;

  /** @param {import("./faulty-server.js").Manners} manners */
  constructor(manners) {
    this.manners = manners;
  }

  start() {
    return new Promise((resolve) => this.#server.listen(0, "127.0.0.1", () => resolve(undefined)));
  }

  get url() {
    const address = /** @type {import("node:net").AddressInfo} */ (this.#server.address());
    return `http://127.0.0.1:${address.port}`;
  }

  stop() {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(resolve));
  }

  /** @param {string} path */
  at(path) {
    return this.url + path;
  }

  /** @param {string} path @param {Uint8Array | string} content @param {string} [etag] */
  put(path, content, etag) {
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
    this.#files.set(path, { bytes, etag });
    return this;
  }

  /** @param {string} path */
  remove(path) {
    this.#files.delete(path);
  }

  /** Misbehaves in the next `times` answers to GET. @param {string} path @param {number} times @param {import("./faulty-server.js").Act} act */
  rule(path, times, act) {
    this.#rules.push({ path, start: undefined, isOfAll: false, left: times, act });
  }

  /** The same, of parts that begin at `start`. @param {string} path @param {number} start @param {number} times @param {import("./faulty-server.js").Act} act */
  ruleAt(path, start, times, act) {
    this.#rules.push({ path, start, isOfAll: false, left: times, act });
  }

  /** The same, of HEAD too. @param {string} path @param {number} times @param {import("./faulty-server.js").Act} act */
  ruleOfAll(path, times, act) {
    this.#rules.push({ path, start: undefined, isOfAll: true, left: times, act });
  }

  clearRules() {
    this.#rules = [];
    this.#cuts = [];
  }

  /** Drops the connection once at each of these bytes of a file. @param {string} path @param {number[]} bytes */
  cutAt(path, bytes) {
    this.#cuts = bytes.map((at) => ({ path, at })).sort((left, right) => left.at - right.at);
  }

  /** Where a part breaks, counted from its first byte. @param {string} path @param {number} from @param {number} to */
  #takeCut(path, from, to) {
    const cut = this.#cuts.find((one) => one.path === path && from < one.at && one.at < to);
    this.#cuts = this.#cuts.filter((one) => one !== cut);
    return cut && cut.at - from;
  }

  /** Requests since the last call. */
  takeRequests() {
    const { requests } = this;
    this.requests = [];
    this.sent = 0;
    return requests;
  }

  /** Where the parts began that were requested, ascending; `undefined` for whole files. @param {string} path */
  starts(path) {
    const asked = this.requests.filter((request) => request.path === path && request.method === "GET");
    return asked.map(({ start }) => start).sort((a, b) => (a ?? Infinity) - (b ?? Infinity));
  }

  /** Puts a repository: its list and its files, of which weights have hashes. @param {string} model @param {Record<string, Uint8Array | string>} files */
  putHub(model, files) {
    const siblings = Object.entries(files).map(([name, content]) => {
      const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
      const sha256 = createHash("sha256").update(bytes).digest("hex");
      this.put(this.hubPath(model, name), bytes, '"first"');
      const isLarge = /\.(gguf|safetensors|setun)$/.test(name);
      const lfs = { sha256, size: bytes.length, pointerSize: 130 };
      const blobId = createHash("sha1").update(bytes).digest("hex");
      return { rfilename: name, size: bytes.length, blobId, ...(isLarge && { lfs }) };
    });
    const list = JSON.stringify({ sha: COMMIT, siblings, cardData: { license: "mit" } });
    for (const revision of ["main", COMMIT]) this.put(this.listPath(model, revision), list, '"list"');
  }

  /** @param {string} model @param {string} file */
  hubPath(model, file) {
    return `/${model}/resolve/${COMMIT}/${file}`;
  }

  /** @param {string} model @param {string} revision */
  listPath(model, revision) {
    return `/api/models/${model}/revision/${revision}?blobs=true`;
  }

  /** Answers a request, of another server's pages too. @param {import("node:http").IncomingMessage} request @param {import("node:http").ServerResponse} response */
  async answer(request, response) {
    const path = decodeURIComponent(request.url ?? "/");
    const method = request.method ?? "GET";
    const { headers } = request;
    const [, start, last] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? "") ?? [];
    const asked = { path, method, start: start === undefined ? undefined : Number(start), headers };
    if (this.#permit(request, response)) return;
    this.requests.push(asked);
    if (method === "HEAD" && this.manners.head !== undefined)
      return response.writeHead(this.manners.head).end();
    const act = this.#actFor(asked);
    await act.after;
    if (act.become !== undefined) this.put(path, act.become.bytes, act.become.etag);
    if (act.status !== undefined) return response.writeHead(act.status, act.headers).end();
    if (act.redirect !== undefined)
      return response.writeHead(302, { location: act.redirect, ...act.headers }).end();
    const file = this.#files.get(path);
    if (file === undefined) return this.#sendMissing(response);
    this.#send(response, file, { asked, last: last ? Number(last) : undefined, act });
  }

  /** What other sites may do here. Answers questions for permission. @param {import("node:http").IncomingMessage} request @param {import("node:http").ServerResponse} response */
  #permit({ method, headers }, response) {
    const { cors } = this.manners;
    if (cors === undefined) return false;
    response.setHeader("access-control-allow-origin", "*");
    if (cors.exposes) response.setHeader("access-control-expose-headers", "ETag, Content-Range");
    if (method !== "OPTIONS") return false;
    response.setHeader("access-control-allow-headers", cors.allows ?? "");
    this.requests.push({ path: "", method: "OPTIONS", start: undefined, headers });
    response.writeHead(204).end();
    return true;
  }

  /** @param {import("./faulty-server.js").Asked} asked @returns {import("./faulty-server.js").Act} */
  #actFor({ path, method, start }) {
    const rule = this.#rules.find(
      (one) =>
        one.path === path &&
        one.left > 0 &&
        (one.isOfAll || method === "GET") &&
        (one.start === undefined || one.start === start),
    );
    if (rule === undefined) return {};
    rule.left -= 1;
    return rule.act;
  }

  /** @param {import("node:http").ServerResponse} response */
  #sendMissing(response) {
    if (this.manners.pages)
      return response.writeHead(200, { "content-type": "text/html" }).end("<p>an app</p>");
    return response.writeHead(404).end();
  }

  /**
   * @param {import("node:http").ServerResponse} response @param {{ bytes: Uint8Array, etag: string | undefined }} file
   * @param {{ asked: import("./faulty-server.js").Asked, last: number | undefined, act: import("./faulty-server.js").Act }} what
   */
  #send(response, { bytes, etag }, { asked, last, act }) {
    const { ranges = true, etags = true, gzip = false, bare = false } = this.manners;
    const condition = asked.headers["if-range"];
    const isPart =
      ranges &&
      !act.ignoreRange &&
      asked.start !== undefined &&
      (!condition || condition === etag || act.ignoreCondition);
    const from = isPart ? Number(asked.start) : 0;
    const to = isPart ? Math.min((last ?? bytes.length) + 1, bytes.length) : bytes.length;
    if (etags && !bare && etag !== undefined) response.setHeader("etag", etag);
    if (ranges) response.setHeader("accept-ranges", "bytes");
    response.setHeader("content-type", "application/octet-stream");
    if (isPart && from >= bytes.length) {
      return response.writeHead(416, { "content-range": `bytes */${bytes.length}` }).end();
    }
    // A slice of a Buffer is the same memory.
    let body = new Uint8Array(bytes.subarray(from, to));
    if (isPart && !bare) response.setHeader("content-range", `bytes ${from}-${to - 1}/${bytes.length}`);
    if (act.wrong && body.length > 0) body[body.length >> 1] ^= 0xff;
    if (act.more !== undefined) body = Buffer.concat([body, new Uint8Array(act.more)]);
    if (act.fewer !== undefined) body = body.subarray(0, -act.fewer);
    const isZipped = (gzip && !isPart) || act.gzip === true;
    if (isZipped) {
      body = gzipSync(body);
      response.setHeader("content-encoding", "gzip");
    }
    const isLengthTold = !act.chunked && (!isZipped || act.lies || this.manners.gzip === "told");
    if (isLengthTold) response.setHeader("content-length", body.length + (act.saysMore ?? 0));
    response.statusCode = isPart ? 206 : 200;
    if (asked.method === "HEAD") return response.end();
    const breakAfter = act.breakAfter ?? this.#takeCut(asked.path, from, to);
    const sent = breakAfter === undefined ? body : body.subarray(0, breakAfter);
    this.sent += sent.length;
    asked.sent = sent.length;
    const isBroken = breakAfter !== undefined || act.saysMore !== undefined;
    if (!isBroken && act.stall === undefined) return response.end(sent);
    response.flushHeaders();
    if (act.stall !== undefined) return response.write(sent.subarray(0, act.stall));
    if (sent.length === 0) return setImmediate(() => response.destroy());
    return response.write(sent, () => setTimeout(() => response.destroy(), 50));
  }
}
