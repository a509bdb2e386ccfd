/** Compiling and starting WebAssembly builds. */

import { failedRequest, isMissing, pageAdvice } from "./download/answers.js";
import { networkError } from "./download/errors.js";
import { hostName, remedy } from "./environment.js";
import { SetunError } from "./errors.js";
import type { WasmModule } from "./wasm.js";
import { REMEDY } from "./worker-refused.js";

/** Generated JavaScript of a module, and its WebAssembly code. */
export interface StartedModule<Glue> {
  readonly glue: Glue;
  /** Compiles the code. */
  compile(): Promise<WebAssembly.Module>;
}

/** A build of the engine. */
export interface WasmBuild extends StartedModule<WasmModule> {
  /** Starts the thread pool of a threaded build. */
  startThreads?(count: number): Promise<void>;
}

/** A module that runs. */
export interface RunningModule {
  /** Resolves when its threads wait for work. A model is read meanwhile. */
  readonly threads: Promise<void>;
}

/** Generated modules have one instance each, which models on the page's thread share. */
const started = new WeakMap<Glue, Promise<RunningModule>>();

type Glue = Pick<WasmModule, "default">;

/** A {@link StartedModule}, which may be a {@link WasmBuild}. */
type Build = StartedModule<Glue> & Pick<WasmBuild, "startThreads">;

/** Starts a module once. */
export function startWasm(build: Build, memory?: WebAssembly.Memory, threads = 1): Promise<RunningModule> {
  const running = started.get(build.glue) ?? start(build, memory, threads);
  started.set(build.glue, running);
  // The next load tries again.
  running.then((module) => module.threads).catch(() => started.delete(build.glue));
  return running;
}

async function start(
  build: Build,
  memory: WebAssembly.Memory | undefined,
  threads: number,
): Promise<RunningModule> {
  const module = await build.compile();
  try {
    await build.glue.default({ module_or_path: module, ...(memory !== undefined && { memory }) });
  } catch (cause) {
    const message = `the WebAssembly module could not be started; ${remedy("memory")}`;
    throw new SetunError("out-of-memory", message, { cause });
  }
  return { threads: memory === undefined ? Promise.resolve() : startThreads(build, threads) };
}

async function startThreads(build: Build, threads: number): Promise<void> {
  try {
    await build.startThreads?.(threads);
  } catch (cause) {
    throw new SetunError("backend-unavailable", "the threads could not be started; pass threads: 1", {
      cause,
    });
  }
}

/** Fetches and compiles in parallel if the server sends `application/wasm`. */
export async function compileFrom(url: URL): Promise<WebAssembly.Module> {
  const response = await fetchCode(url);
  const streamable = response.headers.get("content-type")?.startsWith("application/wasm") === true;
  return compiled(url, async () =>
    streamable ? WebAssembly.compileStreaming(response) : WebAssembly.compile(await response.arrayBuffer()),
  );
}

/** Words of browsers for a policy that forbids WebAssembly. */
const POLICY = /unsafe-eval|content security policy|\bcsp\b/i;

/** Runs `compile`, and translates its errors. */
export async function compiled(
  url: URL,
  compile: () => Promise<WebAssembly.Module>,
): Promise<WebAssembly.Module> {
  try {
    return await compile();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const code = cause instanceof RangeError ? "out-of-memory" : "backend-unavailable";
    const isForbidden = POLICY.test(reason);
    const other = code === "out-of-memory" ? remedy("memory") : "install or copy the package again";
    const way = isForbidden ? remedy("policy") : other;
    throw new SetunError(code, `${url}: ${hostName()} does not compile it: ${reason}; ${way}`, { cause });
  }
}

async function fetchCode(url: URL): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url);
  } catch (cause) {
    throw networkError(url.href, failedRequest(url.href), cause);
  }
  if (isMissing(response, url.href))
    throw networkError(url.href, `no such file of the package; ${REMEDY}${pageAdvice(url.href)}`);
  if (response.ok) return response;
  throw networkError(url.href, `the server answered ${response.status}`);
}
