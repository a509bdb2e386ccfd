/** The kind of host that this code runs in, and remedies in its words. */

/** A page, a worker that a page has started, a service worker, or a runtime without pages such as Node. */
export type Environment = "page" | "worker" | "service-worker" | "node";

/** The parts of hosts by which they differ. */
interface Globals {
  readonly document?: unknown;
  readonly WorkerGlobalScope?: unknown;
  readonly ServiceWorkerGlobalScope?: unknown;
  readonly Deno?: unknown;
  readonly Bun?: unknown;
}

/** The host of this code. */
export function environment(globals: Globals = globalThis): Environment {
  if (globals.document !== undefined) return "page";
  if (globals.ServiceWorkerGlobalScope !== undefined) return "service-worker";
  // Bun and Deno have workers, but no pages.
  const isServer = globals.Deno !== undefined || globals.Bun !== undefined;
  return globals.WorkerGlobalScope !== undefined && !isServer ? "worker" : "node";
}

/** The host as the subject of a sentence. */
export function hostName(host: Environment = environment(), globals: Globals = globalThis): string {
  if (host !== "node") return "this browser";
  if (globals.Deno !== undefined) return "Deno";
  return globals.Bun !== undefined ? "Bun" : "Node";
}

const ISOLATION = "Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp";

const WASM_POLICY = "add 'wasm-unsafe-eval' to script-src of the Content-Security-Policy";

const STORE_LESS = "load with `store: false`, which stores nothing";

const SMALLER = "dispose of models that are no longer used, or take a smaller model";

const ON_GPU = 'backend: "webgpu"';

/** What to do about a failure, in each host. */
const REMEDIES = {
  /** No shared memory, and so no threads. */
  isolation: {
    page: `the page is not cross-origin isolated: serve it with ${ISOLATION}, or call isolate of setun/isolate`,
    worker: `the page is not cross-origin isolated: serve it, and the file of this worker, with ${ISOLATION}`,
    "service-worker": "a service worker has no threads: load the model in a page",
    node: "it runs one thread",
  },
  /** No workers. */
  worker: {
    page: "this browser has no workers",
    worker: "this browser has no workers in workers",
    "service-worker": "a service worker cannot start workers; load the model in a page",
    node: "the model runs on the calling thread, which may be a worker of yours",
  },
  /** WebAssembly is not compiled. */
  policy: {
    page: `${WASM_POLICY} of the page`,
    worker: `${WASM_POLICY} that the server sends with the page and with the files of setun`,
    "service-worker": `${WASM_POLICY} that the server sends with the file of the service worker`,
    node: "start it without flags that forbid WebAssembly, such as --jitless",
  },
  /** Memory is refused. */
  memory: {
    page: `${SMALLER}, or close other tabs`,
    worker: `${SMALLER}, or close other tabs`,
    "service-worker": `${SMALLER}, or load it in a page, whose memory is larger`,
    node: `${SMALLER}, or give the process more memory`,
  },
  /** A model is larger than the memory of WebAssembly. */
  size: {
    page: `take a smaller model, or a GPU with ${ON_GPU}`,
    worker: `take a smaller model, or a GPU with ${ON_GPU}`,
    "service-worker": `take a smaller model, or load it in a page with ${ON_GPU}`,
    node: "take a smaller model, or run it with the command setun",
  },
  /** The storage refuses a file. */
  storage: {
    page: `a private window may have no storage: ${STORE_LESS}, or use an ordinary window`,
    worker: `a private window may have no storage: ${STORE_LESS}, or use an ordinary window`,
    "service-worker": STORE_LESS,
    node: STORE_LESS,
  },
} as const satisfies Record<string, Record<Environment, string>>;

/** What to do about a failure. */
export function remedy(failure: keyof typeof REMEDIES, host: Environment = environment()): string {
  return REMEDIES[failure][host];
}

/** Why an entry point for pages loads nothing in a service worker, which cannot import on demand. */
export const WRONG_ENTRY =
  'this entry point is for pages and their workers: import "setun/service-worker" in a service worker';

/** Why there is no WebGPU. */
export function noWebGpu(host: Environment): string {
  if (host === "node")
    return `${hostName(host)} has no WebGPU: take backend: "cpu", or load the model in a page`;
  const where = host === "page" ? "" : " in workers";
  return `this browser has no WebGPU${where}: use a current one, or take backend: "cpu"`;
}

/** Why WebGPU finds no GPU. */
export function noAdapter(host: Environment): string {
  const settings = host === "node" ? "" : "turn on graphics acceleration in its settings, or ";
  return `${hostName(host)} finds no GPU for WebGPU: ${settings}update the driver`;
}

/** Why an entry point has no build for WebGPU. */
export function noGpuBuild(host: Environment): string {
  return host === "service-worker"
    ? "a service worker runs models on the CPU: load the model in a page"
    : 'this entry point has no WebGPU build: import "setun" instead';
}

/** Why no build runs. */
export function noSimd(host: Environment): string {
  return `${hostName(host)} has no WebAssembly SIMD: use a current version`;
}
