import { afterEach, describe, expect, it, vi } from "vitest";
import { type Environment, environment, hostName, remedy } from "../src/environment.js";
import { asSetunError, SetunError } from "../src/errors.js";
import { translateErrors } from "../src/store/storage-errors.js";
import { compiled } from "../src/wasm-instance.js";
import { connectWorker } from "../src/worker-link.js";

/** What each host has. */
const GLOBALS: Record<Environment, Record<string, unknown>> = {
  page: { document: new EventTarget() },
  worker: { WorkerGlobalScope: class {} },
  "service-worker": { WorkerGlobalScope: class {}, ServiceWorkerGlobalScope: class {} },
  node: {},
};

function inHost(host: Environment): void {
  for (const [name, value] of Object.entries(GLOBALS[host])) vi.stubGlobal(name, value);
}

afterEach(() => {
  vi.unstubAllGlobals();
});

/** The error of some work. */
async function errorOf(work: () => Promise<unknown>): Promise<SetunError> {
  const thrown: unknown = await work().then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(thrown instanceof SetunError)) throw new Error(`expected an error with a code, found ${thrown}`);
  return thrown;
}

const CODE = new URL("https://example.org/setun_bg.wasm");

/** Compiles code, which fails so. */
const compile = (thrown: Error) => () => compiled(CODE, () => Promise.reject(thrown));

/** As Chromium, Firefox and Safari say it. */
const POLICIES = [
  "WebAssembly.compileStreaming(): Compiling or instantiating WebAssembly module violates the following Content Security policy directive",
  "call to WebAssembly.compileStreaming() blocked by CSP",
  "Refused to create a WebAssembly object because 'unsafe-eval' is not an allowed source of script",
];

it.each(Object.keys(GLOBALS) as Environment[])("knows a %s", (host) => {
  inHost(host);
  expect(environment()).toBe(host);
  expect(hostName()).toBe(host === "node" ? "Node" : "this browser");
});

it.each(["Deno", "Bun"])("takes %s for Node, also in its workers", (name) => {
  inHost("worker");
  vi.stubGlobal(name, {});
  expect([environment(), hostName()]).toEqual(["node", name]);
});

describe("names the remedy", () => {
  it.each([
    ["page", /this browser does not compile it.*'wasm-unsafe-eval' to script-src .* of the page$/],
    ["worker", /'wasm-unsafe-eval' .* sends with the page and with the files of setun$/],
    ["service-worker", /'wasm-unsafe-eval' .* sends with the file of the service worker$/],
    ["node", /Node does not compile it.*--jitless$/],
  ] as const)("of a policy that forbids WebAssembly: %s", async (host, words) => {
    inHost(host);
    for (const policy of POLICIES) {
      const { code, message } = await errorOf(compile(new WebAssembly.CompileError(policy)));
      expect(code).toBe("backend-unavailable");
      expect(message).toMatch(words);
    }
  });

  it("of damaged code, which no policy allows", async () => {
    const { message } = await errorOf(compile(new WebAssembly.CompileError("expected magic word")));
    expect(message).toMatch(/expected magic word; install or copy the package again$/);
  });

  it.each([
    ["page", /close other tabs$/],
    ["worker", /close other tabs$/],
    ["service-worker", /load it in a page/],
    ["node", /give the process more memory$/],
  ] as const)("of missing memory: %s", async (host, words) => {
    inHost(host);
    const engine = Object.assign(new Error("the cache needs 9 bytes"), { code: "out-of-memory" });
    const found = [asSetunError(engine), await errorOf(compile(new RangeError("no memory")))];
    for (const error of found) {
      expect(error).toMatchObject({ code: "out-of-memory", message: expect.stringMatching(words) });
    }
  });

  it.each([
    ["page", /a private window may have no storage: .*`store: false`/],
    ["worker", /a private window may have no storage: .*`store: false`/],
    ["service-worker", /; load with `store: false`/],
  ] as const)("of a storage that refuses: %s", async (host, words) => {
    inHost(host);
    const refused = () => Promise.reject(new DOMException("not here", "SecurityError"));
    const { code, message } = await errorOf(() => translateErrors("write", "a/b", refused));
    expect([code, message]).toEqual(["io", expect.stringMatching(words)]);
  });

  it.each([
    ["page", /serve it with Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy/],
    ["worker", /serve it, and the file of this worker, with Cross-Origin-Opener-Policy/],
    ["service-worker", /load the model in a page/],
    ["node", /one thread/],
  ] as const)("of missing threads: %s", (host, words) => {
    expect(remedy("isolation", host)).toMatch(words);
  });

  it("speaks of a browser, pages and tabs in browsers only", () => {
    for (const failure of ["isolation", "worker", "policy", "memory", "size", "storage"] as const) {
      expect(remedy(failure, "node")).not.toMatch(/browser|\bpages?\b|tabs|private window/);
    }
  });
});

describe("a policy that blocks the worker", () => {
  /** A worker that fails without a word, after a violation of a policy. */
  function blocked(blockedURI: string, effectiveDirective = "worker-src"): Error | undefined {
    const document = new EventTarget();
    vi.stubGlobal("document", document);
    vi.stubGlobal("origin", "https://app.example");
    const worker = Object.assign(new EventTarget(), {
      postMessage: () => undefined,
      terminate: () => undefined,
    });
    let failed: Error | undefined;
    const link = connectWorker(() => worker as unknown as Worker)(
      () => undefined,
      (error) => {
        failed = error;
      },
    );
    const violation = Object.assign(new Event("securitypolicyviolation"), { blockedURI, effectiveDirective });
    document.dispatchEvent(violation);
    worker.dispatchEvent(new Event("error"));
    link.close();
    return failed;
  }

  it.each([
    ["https://app.example/worker.js", "add 'self' to worker-src, or pass worker: false"],
    ["https://cdn.example/worker.js", "add https://cdn.example to worker-src"],
    ["blob", "add blob: and the origin of setun's files to worker-src"],
  ])("is named with what it needs: %s", (uri, words) => {
    expect(blocked(uri)).toMatchObject({ code: "network", message: expect.stringContaining(words) });
  });

  it("is no violation of something else", () => {
    expect(blocked("https://app.example/a.png", "img-src")).toBeUndefined();
  });
});
