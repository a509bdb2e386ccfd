/** From a source to a model. */

import { SetunError } from "./errors.js";
import { detectFeatures, reserveSharedMemory } from "./features.js";
import type { FromHost } from "./messages.js";
import { Model } from "./model.js";
import { checkLoadOptions, type LoadOptions } from "./options.js";
import { asksForGpu, type Build, type BuildChoice, pickBuild } from "./pick-build.js";
import { type Connect, Session } from "./session.js";
import { type LoadSource, type ModelSource, modelSource } from "./sources.js";
import type { WasmModelInfo } from "./wasm.js";

/** What differs between a browser and Node. */
export interface Platform {
  readonly builds: readonly Build[];
  /** Pages that threaded builds start with; 0 if there is none. */
  readonly initialSharedPages: number;
  readonly hasWorkers: boolean;
  /** What relative addresses are relative to. */
  baseUrl(): string;
  embeddedModel(): URL;
  connect(build: Build, inWorker: boolean): Promise<Connect>;
}

/** `load` for one platform. */
export type Load = (source?: LoadSource, options?: LoadOptions) => Promise<Model>;

/** Makes the `load` of an entry point. */
export function loadOn(platform: Platform): Load {
  return async (source, options = {}) => {
    checkLoadOptions(options);
    options.signal?.throwIfAborted();
    const inWorker = options.worker ?? platform.hasWorkers;
    if (inWorker && !platform.hasWorkers)
      throw new SetunError("bad-option", "worker: there are none in Node");
    const from = modelSource(source ?? platform.embeddedModel(), platform.baseUrl());
    const { choice, memory } = await chooseBuild(platform, inWorker, options);
    const session = new Session(await platform.connect(choice.build, inWorker));
    try {
      const info = await open(session, from, choice, memory, options);
      return new Model(session, { ...info, build: choice.build, worker: inWorker });
    } catch (thrown) {
      session.close();
      throw thrown;
    }
  };
}

async function chooseBuild(
  platform: Platform,
  inWorker: boolean,
  options: LoadOptions,
): Promise<{ choice: BuildChoice; memory: WebAssembly.Memory | undefined }> {
  // Threads wait by blocking, which the page's own thread must not.
  const { backend = "auto" } = options;
  const lookForGpu = asksForGpu(backend);
  const mayThread = inWorker && platform.initialSharedPages > 0 && options.threads !== 1 && !lookForGpu;
  const shared = mayThread ? await reserveSharedMemory(platform.initialSharedPages) : undefined;
  const features = await detectFeatures(platform.builds, shared, lookForGpu);
  const choice = pickBuild(features, { backend, threads: options.threads });
  const memory = choice.build.endsWith("-threads") ? shared?.memory : undefined;
  return { choice, memory };
}

function open(
  session: Session,
  source: ModelSource,
  { backend, threads }: BuildChoice,
  memory: WebAssembly.Memory | undefined,
  { onProgress, signal }: LoadOptions,
): Promise<WasmModelInfo> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      session.follow(id, { type: "stop" });
      reject(signal?.reason);
    };
    const unwatch = () => signal?.removeEventListener("abort", abort);
    const receive = (message: FromHost) => {
      if (message.type === "progress" && !signal?.aborted) onProgress?.(message.progress);
      if (message.type !== "opened") return;
      unwatch();
      session.forget(id);
      resolve(message.info);
    };
    const fail = (error: Error) => {
      unwatch();
      reject(error);
    };
    const request = {
      type: "open",
      source,
      backend,
      threads,
      ...(memory !== undefined && { memory }),
    } as const;
    const id = session.start(request, { receive, fail });
    if (signal?.aborted) abort();
    else signal?.addEventListener("abort", abort, { once: true });
  });
}
