import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { connectLocal } from "../src/host-links.js";
import { loadOn } from "../src/load.js";
import { openStreamed } from "../src/open-model.js";
import { addressSource } from "../src/sources.js";
import { UrlFiles } from "../src/url-files.js";
import { emptyLog, fakeBuild } from "./fake-wasm.js";

/** Byte `i` of every file is `i mod 251`. */
const bytes = Uint8Array.from({ length: 300_000 }, (_, i) => i % 251);

let requests: { path: string; range: string | undefined }[];
let answer: (request: IncomingMessage, response: ServerResponse) => void;
const server = createServer((request, response) => {
  requests.push({ path: request.url ?? "", range: request.headers.range });
  answer(request, response);
});

beforeEach(async () => {
  requests = [];
  answer = (_, response) => response.setHeader("content-length", bytes.length).end(bytes);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterEach(
  () =>
    new Promise((resolve) => {
      server.closeAllConnections();
      server.close(resolve);
    }),
);

const at = (path: string) => `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`;

function open(path: string, signal = new AbortController().signal, options = {}): UrlFiles {
  const source = addressSource(at(path), "http://localhost/");
  if (source.kind !== "url") throw new Error("expected an address");
  return new UrlFiles(source, signal, options);
}

describe("UrlFiles", () => {
  it.each(["headers", "the rest of the body"])("ends a wait for %s that do not come", async (what) => {
    answer = (_, response) => {
      if (what !== "headers")
        response.writeHead(200, { "content-length": bytes.length }).write(bytes.slice(0, 10));
    };
    const files = open("/m/", undefined, { idleTimeout: 100 });
    await expect(files.read("a", { start: 0, end: 20 })).rejects.toMatchObject({
      code: "network",
      message: expect.stringMatching(/\/m\/a: nothing came for too long$/),
    });
    await files.close();
  });

  it("lets a load without store and worker end 30 s after a request that nobody answers", async () => {
    const requested = new Promise<void>((resolve) => {
      answer = () => resolve();
    });
    const load = loadOn({
      builds: ["simd128"],
      initialSharedPages: 0,
      hasWorkers: true,
      baseUrl: () => "http://localhost/",
      embeddedModel: () => new URL("http://localhost/embedded.safetensors"),
      connect: async () => connectLocal({ build: fakeBuild(emptyLog()), openModel: openStreamed }),
    });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      let failure: unknown;
      const loading = load(at("/m/"), { store: false, worker: false }).catch((thrown: unknown) => {
        failure = thrown;
      });
      await requested;
      await vi.advanceTimersByTimeAsync(29_999);
      expect(failure).toBeUndefined();
      await vi.advanceTimersByTimeAsync(1);
      await loading;
      expect(failure).toMatchObject({
        code: "network",
        message: expect.stringMatching(/\/m\/config\.json: nothing came for too long$/),
      });
    } finally {
      vi.useRealTimers();
    }
  });

  it("serves one file's ranges in order from one plain request", async () => {
    const files = open("/m/");
    for (let start = 0; start < bytes.length; start += 70_001) {
      const end = Math.min(start + 70_001, bytes.length);
      const found = await files.read("a.safetensors", { start, end });
      // Vitest compares long arrays element by element, for a second.
      expect(found && Buffer.compare(found, bytes.slice(start, end))).toBe(0);
    }
    expect(requests).toEqual([{ path: "/m/a.safetensors", range: undefined }]);
    expect(files.totalBytes()).toBe(bytes.length);
    await files.close();
  });

  it("skips gaps, and asks again only to go back", async () => {
    const files = open("/m/");
    expect(await files.read("a", { start: 100, end: 110 })).toEqual(bytes.slice(100, 110));
    expect(await files.read("a", { start: 50_000, end: 50_010 })).toEqual(bytes.slice(50_000, 50_010));
    expect(await files.read("a", { start: 8, end: 16 })).toEqual(bytes.slice(8, 16));
    expect(requests.map(({ range }) => range)).toEqual(["bytes=100-", "bytes=8-"]);
    await files.close();
  });

  it("resumes a file where a server has ranges, when many are read in turn", async () => {
    answer = ({ headers }, response) => {
      const start = Number(/^bytes=(\d+)-$/.exec(headers.range ?? "")?.[1] ?? 0);
      response.writeHead(start > 0 ? 206 : 200, { "content-length": bytes.length - start });
      response.end(bytes.subarray(start));
    };
    const files = open("/m/");
    const names = ["1", "2", "3", "4", "5", "6"];
    for (const name of names) expect(await files.read(name, { start: 0, end: 8 })).toEqual(bytes.slice(0, 8));
    for (const name of names)
      expect(await files.read(name, { start: 8, end: 99 })).toEqual(bytes.slice(8, 99));
    expect(files.totalBytes()).toBe(names.length * bytes.length);
    expect(requests.filter(({ range }) => range === "bytes=8-").length).toBeGreaterThan(0);
    await files.close();
  });

  it.each([
    ["by their headers", (request: IncomingMessage) => request.method === "HEAD"],
    ["where HEAD is refused", (request: IncomingMessage) => request.headers.range === "bytes=0-0"],
  ])("knows the sizes of files that are read later: %s", async (_, isAnswered) => {
    const size = (path: string) => 1000 * Number(/\d/.exec(path));
    answer = (request, response) => {
      const { url = "", method, headers } = request;
      if (method === "HEAD" && !isAnswered(request)) return response.writeHead(405).end();
      if (headers.range === "bytes=0-0")
        return response.writeHead(206, { "content-range": `bytes 0-0/${size(url)}` }).end("x");
      return response.setHeader("content-length", size(url)).end(bytes.subarray(0, size(url)));
    };
    const source = addressSource(at("/m/"), "http://localhost/");
    const model = await openStreamed(source, { store: false }, new AbortController().signal);
    const files = (await model.open()).files();
    await files.read("1", { start: 0, end: 8 });
    await files.expect(["1", "2", "3"]);
    expect(files.totalBytes()).toBeUndefined();
    await vi.waitFor(() => expect(files.totalBytes()).toBe(6000));
    const others = requests.filter(({ path, range }) => path !== "/m/1" && range === "bytes=0-");
    expect(others).toEqual([]);
    await files.close();
  });

  it("has no total while a server does not state the size of a file that is read later", async () => {
    answer = (request, response) =>
      request.url === "/m/2" && request.headers.range === undefined && request.method === "GET"
        ? response.setHeader("content-length", 9).end("all of it")
        : response.writeHead(request.url === "/m/2" ? 403 : 200).end("all");
    const source = addressSource(at("/m/"), "http://localhost/");
    const model = await openStreamed(source, { store: false }, new AbortController().signal);
    const files = (await model.open()).files();
    await files.expect(["2"]);
    await vi.waitFor(() => expect(requests.length).toBeGreaterThan(1));
    expect(files.totalBytes()).toBeUndefined();
    await files.read("2", { start: 0, end: 4 });
    expect(files.totalBytes()).toBe(9);
    await files.close();
  });

  it("finds a single file at its full URL, and the files beside it", async () => {
    const files = open("/m/a.safetensors?token=1");
    await files.read("a.safetensors", { start: 0, end: 8 });
    await files.read("config.json", undefined);
    expect(requests.map(({ path }) => path)).toEqual(["/m/a.safetensors?token=1", "/m/config.json"]);
    await files.close();
  });

  it("returns fewer bytes at the end of the file", async () => {
    const files = open("/m/");
    const end = bytes.length + 10;
    expect(await files.read("a", { start: bytes.length - 5, end })).toEqual(bytes.slice(-5));
    await files.close();
  });

  it.each([
    ["404", (response: ServerResponse) => response.writeHead(404).end()],
    [
      "a web page instead",
      (response: ServerResponse) => response.setHeader("content-type", "text/html").end("<p>"),
    ],
  ])("recognizes a missing file: %s", async (_, missing) => {
    answer = (_, response) => missing(response);
    expect(await open("/m/").read("config.json", undefined)).toBeUndefined();
  });

  it("reports other status codes as network", async () => {
    answer = (_, response) => response.writeHead(503).end();
    await expect(open("/m/").read("a", undefined)).rejects.toMatchObject({ code: "network" });
  });

  it("reports an unreachable server as network", async () => {
    const source = { kind: "url", layout: "folder", name: "", url: "http://127.0.0.1:1/" } as const;
    const files = new UrlFiles(source, new AbortController().signal);
    await expect(files.read("a", undefined)).rejects.toMatchObject({ code: "network" });
  });

  it("reports a broken transfer as truncated, with both lengths", async () => {
    answer = (_, response) => {
      response.setHeader("content-length", bytes.length);
      response.write(bytes.subarray(0, 1000), () => response.destroy());
    };
    await expect(open("/m/").read("a", { start: 0, end: bytes.length })).rejects.toMatchObject({
      code: "truncated",
      message: expect.stringMatching(/ended after \d+ bytes, expected 300000 bytes/),
    });
  });

  it("rejects with the signal's own reason", async () => {
    answer = (_, response) => response.write(bytes.subarray(0, 10));
    const controller = new AbortController();
    const files = open("/m/", controller.signal);
    await files.read("a", { start: 0, end: 10 });
    const reading = files.read("a", { start: 10, end: 100 });
    const reason = new Error("enough");
    setImmediate(() => controller.abort(reason));
    await expect(reading).rejects.toBe(reason);
  });
});
