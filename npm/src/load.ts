/** `load`: choice of build and device, and the request to the host. */

import { catalogNames } from "./catalog.js";
import { checkLoadOptions, engineLimits } from "./check-options.js";
import {
  type DeviceDecision,
  decideDevice,
  explainThreads,
  gpuFailed,
  gpuUnavailable,
  reportCpu,
  reportGpu,
} from "./choose-device.js";
import { type Connect, Connection, type Request, requestWithProgress } from "./connection.js";
import { hasCrossOriginStorage } from "./cross-origin-page.js";
import { hostName, remedy } from "./environment.js";
import { SetunError } from "./errors.js";
import { detectFeatures, mostSharedPages, type SharedPages } from "./features.js";
import { type LoadProgress, steadyProgress } from "./load-progress.js";
import { Model, type ModelHost, type ModelInfo } from "./model.js";
import type { FetchOptions } from "./open-model.js";
import type { EstimateOptions, LoadOptions } from "./options.js";
import {
  type Build,
  type BuildChoice,
  type Features,
  isThreaded,
  mayUseGpu,
  pickBuild,
} from "./pick-build.js";
import type { ModelRequest } from "./protocol.js";
import type { TabsRequest } from "./shared/load-tabs.js";
import { nearestName } from "./shown.js";
import { isDownload, type LoadSource, modelSource } from "./sources.js";
import type { DeviceReport } from "./wasm.js";
import { WorkerRefused } from "./worker-refused.js";

/** Differences between a browser and Node. */
export interface Platform extends ModelHost {
  readonly builds: readonly Build[];
  /** Initial pages of threaded builds; 0 without one. */
  readonly initialSharedPages: number;
  readonly hasWorkers: boolean;
  /** Whether `assetsUrl` has an effect. */
  readonly takesAssetsUrl?: boolean;
  /** What a text or URL means, where files and a store of models can be searched; with `verify` by the store's hashes. */
  resolveName?(source: string | URL, verify: boolean | undefined): Promise<string | URL>;
  /** The story model. `assetsUrl`: see `LoadOptions`. */
  embeddedModel(assetsUrl: string | undefined): URL;
  connect(build: Build, inWorker: boolean, assetsUrl: string | undefined): Promise<Connect>;
  /** Asks the browser not to evict stored models. */
  requestPersistence?(): void;
  /** `load` with `shared` or `resume`, where there are tabs. */
  loadTabs?(request: Omit<TabsRequest, "version">): Promise<Model>;
}

/** A model that runs. */
export interface Opened {
  readonly connection: Connection;
  readonly info: ModelInfo;
  readonly report: DeviceReport;
}

/** Loads a model. `wrap` changes the channels to its hosts. */
export type Open = (options: LoadOptions, wrap?: (connect: Connect) => Connect) => Promise<Opened>;

/** Type of `load`. */
export type Load = (source?: LoadSource, options?: LoadOptions) => Promise<Model>;

/** Type of `load` without a built-in model. */
export type LoadFrom = (source: LoadSource, options?: LoadOptions) => Promise<Model>;

/** The `load` of a platform. */
export function loadOn(platform: Platform): Load {
  return async (source, options = {}) => {
    checkLoadOptions(options);
    const draft = options.speculative?.draft;
    // Both before the first wait, since dropped items are invalid afterwards.
    const [request, draftRequest] = await Promise.all([
      modelRequest(platform, source, options),
      draft === undefined ? undefined : modelRequest(platform, draft, options, "speculative.draft"),
    ]);
    if (request.model.fetchOptions.store || draftRequest?.model.fetchOptions.store)
      platform.requestPersistence?.();
    const all = { ...request, draft: draftRequest?.model, isBuiltIn: source === undefined };
    const onProgress = options.onProgress && steadyProgress(options.onProgress);
    const given = { ...options, ...(onProgress && { onProgress }) };
    return loadRequest(platform, all, given).catch((thrown: unknown) => {
      throw withName(thrown, source, platform.baseUrl());
    });
  };
}

async function loadRequest(platform: Platform, request: LoadRequest, options: LoadOptions): Promise<Model> {
  const open: Open = (given, wrap = (connect) => connect) => {
    const connect: Platform["connect"] = async (...to) => wrap(await platform.connect(...to));
    const run = (all: LoadRequest) => new LoadOperation({ ...platform, connect }, all, given).run();
    return run(request).catch((thrown: unknown) => {
      if (!(thrown instanceof WorkerRefused) || given.worker === true || given.signal?.aborted) throw thrown;
      return runOnPage(run, request, thrown);
    });
  };
  if (options.shared || options.resume) {
    if (platform.loadTabs) return platform.loadTabs({ ...request, open, options, host: platform });
    const name = options.shared ? "shared" : "resume";
    throw new SetunError("bad-option", `${name}: only pages have tabs; leave it out here`);
  }
  const { connection, info, report } = await open(options);
  return new Model(connection, info, report, platform);
}

/** Runs a load on the page's own thread, which no file of a worker is needed for. */
async function runOnPage(
  run: (request: LoadRequest) => Promise<Opened>,
  request: LoadRequest,
  refusal: WorkerRefused,
): Promise<Opened> {
  const unstored = <Model extends ModelRequest | undefined>(model: Model): Model =>
    model && { ...model, fetchOptions: { ...model.fetchOptions, store: false } };
  const { model, draft } = request;
  const onPage = { ...request, model: unstored(model), draft: unstored(draft), inWorker: false };
  const opened = await run(onPage).catch((thrown: unknown) => {
    throw thrown instanceof SetunError && thrown.code === "network" ? refusal : thrown;
  });
  console.warn(`setun: the model runs on the page's own thread: ${refusal.message}`);
  return opened;
}

/** The error of a folder that is not there, and whose name could be a model's of the Hub or of the catalog. */
function withName(thrown: unknown, source: LoadSource | undefined, base: string): unknown {
  if (!(thrown instanceof SetunError) || thrown.code !== "not-found") return thrown;
  if (typeof source !== "string" || !/^\w[\w.-]*(\/\w[\w.-]*)?$/.test(source)) return thrown;
  const isOfHub = source.includes("/");
  const meant = isOfHub ? `hf:${source}` : nearestName(source, catalogNames());
  if (meant === undefined) return thrown;
  const folder = new URL(`${source}/`, base).href;
  const isFolder = [`${folder}config.json: `, `${folder} has no model: `].some((each) =>
    thrown.message.startsWith(each),
  );
  if (!isFolder) return thrown;
  const advice = isOfHub ? `a model of the Hub is "${meant}"` : `did you mean "${meant}"?`;
  const message = `${thrown.message}; ${advice}`;
  return new SetunError(thrown.code, message, { cause: thrown.cause });
}

/** Resolves a source and its fetch options. `name` is the option in error messages. */
export async function modelRequest(
  platform: Platform,
  given: LoadSource | undefined,
  options: Pick<
    LoadOptions,
    keyof EstimateOptions | "connections" | "pretokenizer" | "verify" | "crossOriginStorage"
  >,
  name = "source",
): Promise<{ readonly inWorker: boolean; readonly model: ModelRequest }> {
  const { signal, worker, connections, endpoint, token, assetsUrl, pretokenizer, verify } = options;
  const { crossOriginStorage } = options;
  signal?.throwIfAborted();
  const inWorker = worker ?? platform.hasWorkers;
  if (inWorker && !platform.hasWorkers)
    throw new SetunError("bad-option", `worker: leave it out: ${remedy("worker")}`);
  if (assetsUrl !== undefined && !platform.takesAssetsUrl)
    throw new SetunError(
      "bad-option",
      `assetsUrl: leave it out: ${hostName()} reads the files beside the code`,
    );
  const { resolveName } = platform;
  const source = await modelSource(
    given ?? platform.embeddedModel(assetsUrl),
    platform.baseUrl(),
    options,
    name,
    resolveName && ((text) => resolveName(text, verify)),
  );
  const store = (options.store ?? true) && inWorker && given !== undefined && isDownload(source);
  const fetchOptions: FetchOptions = {
    store,
    ...(store && (crossOriginStorage ?? true) && hasCrossOriginStorage() && { crossOriginStorage: true }),
    ...(connections !== undefined && { connections }),
    ...(verify !== undefined && { verify }),
    ...(endpoint !== undefined && { endpoint }),
    ...(token !== undefined && { token }),
    ...(pretokenizer !== undefined && { pretokenizer }),
  };
  return { inWorker, model: { source, fetchOptions } };
}

/** A requested model with its draft model. */
interface LoadRequest {
  readonly model: ModelRequest;
  readonly draft: ModelRequest | undefined;
  readonly inWorker: boolean;
  readonly isBuiltIn: boolean;
}

/** Features, and the build that runs unless a GPU is faster. */
interface Choices {
  readonly features: Features;
  readonly choice: BuildChoice;
  readonly memory: SharedPages | undefined;
}

/** Error codes of a device. Errors with other codes belong to the model. */
const DEVICE_CODES: readonly unknown[] = ["backend-unavailable", "device-lost", "out-of-memory"];

/** One call of `load`. */
class LoadOperation {
  readonly #platform: Platform;
  readonly #model: ModelRequest;
  readonly #draft: ModelRequest | undefined;
  readonly #inWorker: boolean;
  readonly #options: LoadOptions;
  /** Sentences about damaged files of the store. A GPU that was tried may have found them. */
  #damaged: readonly string[] = [];
  /** Whether `auto` compares a GPU. The built-in model has told its story before a GPU's build is there. */
  readonly #comparesGpu: boolean;

  constructor(platform: Platform, { model, draft, inWorker, isBuiltIn }: LoadRequest, options: LoadOptions) {
    this.#platform = platform;
    this.#model = model;
    this.#draft = draft;
    this.#inWorker = inWorker;
    this.#options = options;
    this.#comparesGpu = (options.backend ?? "auto") === "auto" && !isBuiltIn;
  }

  async run(): Promise<Opened> {
    const choices = await this.#selectFiles();
    const { choice, memory, features } = choices;
    const explain = (report: DeviceReport) =>
      explainThreads(report, features, { inWorker: this.#inWorker, threads: this.#options.threads });
    if (choice.build === "webgpu") return this.#open(choice, memory, (report) => report);
    if (!this.#comparesGpu) return this.#open(choice, memory, explain);
    const gpu = gpuUnavailable(features) ?? (await this.#tryGpu(choices));
    if ("connection" in gpu) return gpu;
    const opened = await this.#open(choice, memory, (report) => explain(reportCpu(report, gpu, choice)));
    if (gpu.gpu.verdict === "failed") console.warn(`setun: the GPU is not used: ${gpu.gpu.reason}`);
    return opened;
  }

  async #selectFiles(): Promise<Choices> {
    const { builds, initialSharedPages } = this.#platform;
    const { backend = "auto", threads } = this.#options;
    // Threads block while they wait, which the page's own thread must not.
    const mayThread = this.#inWorker && initialSharedPages > 0 && threads !== 1 && backend !== "webgpu";
    const maximum = mayThread ? await mostSharedPages() : 0;
    const mayRun = backend === "auto" ? this.#comparesGpu : mayUseGpu(backend);
    const lookForGpu = mayRun && builds.includes("webgpu");
    const features = await detectFeatures(builds, maximum, lookForGpu);
    const choice = pickBuild(features, { backend, threads });
    const memory = isThreaded(choice.build) ? { initial: initialSharedPages, maximum } : undefined;
    return { features, choice, memory };
  }

  /** The model on the GPU if that is faster, else the decision against it. A failing GPU does not fail `load`. */
  async #tryGpu({ features, choice: cpu }: Choices): Promise<Opened | DeviceDecision> {
    const { signal } = this.#options;
    const choice = { build: "webgpu", backend: "webgpu", threads: 1 } as const;
    let connection: Connection | undefined;
    let opened: Opened | undefined;
    let wasProbed = false;
    try {
      connection = await this.#connect(choice);
      const request = { type: "probe", ...this.#model, backend: "auto", threads: 1 } as const;
      const { report } = await this.#request(connection, request, "probed");
      wasProbed = true;
      const judgement = decideDevice(report, cpu);
      if (!judgement.takesGpu) return judgement;
      opened = await this.#openIn(connection, choice, undefined, () => reportGpu(judgement, cpu));
      return opened;
    } catch (thrown) {
      if (signal?.aborted || (wasProbed && !isDeviceError(thrown))) throw thrown;
      return gpuFailed(features, thrown);
    } finally {
      if (opened === undefined) connection?.close();
    }
  }

  async #open(
    choice: BuildChoice,
    memory: SharedPages | undefined,
    report: (report: DeviceReport) => DeviceReport,
  ): Promise<Opened> {
    const connection = await this.#connect(choice);
    try {
      return await this.#openIn(connection, choice, memory, report);
    } catch (thrown) {
      connection.close();
      throw thrown;
    }
  }

  async #openIn(
    connection: Connection,
    { build, backend, threads }: BuildChoice,
    memory: SharedPages | undefined,
    report: (report: DeviceReport) => DeviceReport,
  ): Promise<Opened> {
    const device = { backend, threads, limits: engineLimits(this.#options) };
    const shared = memory && { memory };
    const draft = this.#draft && { draft: this.#draft };
    const request = { type: "open", ...this.#model, ...draft, ...device, ...shared } as const;
    const opened = await this.#request(connection, request, "opened");
    const repairs = this.#damaged.map((damage) => `${damage} and was downloaded again`);
    const warnings = [...opened.info.warnings, ...repairs];
    const info = { ...opened.info, warnings, build, worker: this.#inWorker };
    for (const warning of info.warnings) console.warn(`setun: ${warning}`);
    return { connection, info, report: report(opened.report) };
  }

  #request<Type extends "probed" | "opened">(connection: Connection, request: Request, type: Type) {
    const { signal, onProgress: report } = this.#options;
    const onProgress = (progress: LoadProgress) => {
      this.#damaged = progress.damaged ?? this.#damaged;
      report?.(progress);
    };
    return requestWithProgress(connection, request, type, { onProgress, ...(signal && { signal }) });
  }

  async #connect({ build }: BuildChoice): Promise<Connection> {
    return new Connection(await this.#platform.connect(build, this.#inWorker, this.#options.assetsUrl));
  }
}

function isDeviceError(thrown: unknown): boolean {
  return !(thrown instanceof SetunError) || DEVICE_CODES.includes(thrown.code);
}
