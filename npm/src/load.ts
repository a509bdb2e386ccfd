/** From a source to a model. */

import { type Judgement, judge, judgeFailed, judgeUnprobed, reportCpu, reportGpu } from "./choose-device.js";
import { SetunError } from "./errors.js";
import { detectFeatures, reserveSharedMemory } from "./features.js";
import type { WantedModel } from "./messages.js";
import { Model } from "./model.js";
import type { Coming } from "./open-model.js";
import { ask } from "./opening.js";
import { checkLoadOptions, type EstimateOptions, engineLimits, type LoadOptions } from "./options.js";
import { type Build, type BuildChoice, type Features, mayUseGpu, pickBuild } from "./pick-build.js";
import { type Connect, Session } from "./session.js";
import { isDownload, type LoadSource, modelSource } from "./sources.js";
import type { DeviceReport } from "./wasm.js";

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
  /** Asks that what is kept is not cleared when the disk gets full. */
  askToPersist?(): void;
}

/** `load` for one platform. */
export type Load = (source?: LoadSource, options?: LoadOptions) => Promise<Model>;

/** Makes the `load` of an entry point. */
export function loadOn(platform: Platform): Load {
  return async (source, options = {}) => {
    checkLoadOptions(options);
    const { draft } = options;
    // Both before the first wait: what was dropped is empty afterwards.
    const [wanted, guessing] = await Promise.all([
      wantedModel(platform, source, options),
      draft === undefined ? undefined : wantedModel(platform, draft, options, "draft"),
    ]);
    if (wanted.what.coming.store || guessing?.what.coming.store) platform.askToPersist?.();
    return new Loading(platform, { ...wanted, draft: guessing?.what }, options).run();
  };
}

/** Finds out what is asked for, how it comes, and where it is read. `name` is the option that says so. */
export async function wantedModel(
  platform: Platform,
  given: LoadSource | undefined,
  options: Pick<LoadOptions, keyof EstimateOptions | "connections">,
  name = "source",
): Promise<{ readonly inWorker: boolean; readonly what: WantedModel }> {
  const { signal, worker, connections, endpoint, token } = options;
  signal?.throwIfAborted();
  const inWorker = worker ?? platform.hasWorkers;
  if (inWorker && !platform.hasWorkers) throw new SetunError("bad-option", "worker: there are none in Node");
  const source = await modelSource(given ?? platform.embeddedModel(), platform.baseUrl(), options, name);
  const coming: Coming = {
    store: (options.store ?? true) && inWorker && given !== undefined && isDownload(source),
    ...(connections !== undefined && { connections }),
    ...(endpoint !== undefined && { endpoint }),
    ...(token !== undefined && { token }),
  };
  return { inWorker, what: { source, coming } };
}

/** A model, where it is read, and what guesses for it. */
interface Wanted {
  readonly what: WantedModel;
  readonly draft: WantedModel | undefined;
  readonly inWorker: boolean;
}

/** What can run, and what runs unless a GPU is faster. */
interface Choices {
  readonly features: Features;
  readonly choice: BuildChoice;
  readonly memory: WebAssembly.Memory | undefined;
}

/** What a GPU refuses or fails with, beside errors without a code; any other error is the model's. */
const DEVICE_CODES: readonly unknown[] = ["backend-unavailable", "device-lost", "out-of-memory"];

/** One call of `load`. */
class Loading {
  readonly #platform: Platform;
  readonly #what: WantedModel;
  readonly #draft: WantedModel | undefined;
  readonly #inWorker: boolean;
  readonly #options: LoadOptions;

  constructor(platform: Platform, { what, draft, inWorker }: Wanted, options: LoadOptions) {
    this.#platform = platform;
    this.#what = what;
    this.#draft = draft;
    this.#inWorker = inWorker;
    this.#options = options;
  }

  async run(): Promise<Model> {
    const choices = await this.#choose();
    const { choice, memory, features } = choices;
    if ((this.#options.backend ?? "auto") !== "auto") return this.#open(choice, memory, (report) => report);
    const gpu = judgeUnprobed(features) ?? (await this.#tryGpu(choices));
    if (gpu instanceof Model) return gpu;
    const model = await this.#open(choice, memory, (report) => reportCpu(report, gpu, choice));
    if (gpu.gpu.verdict === "failed") console.warn(`setun: the GPU is not used: ${gpu.gpu.reason}`);
    return model;
  }

  async #choose(): Promise<Choices> {
    const { builds, initialSharedPages } = this.#platform;
    const { backend = "auto", threads } = this.#options;
    // Threads wait by blocking, which the page's own thread must not.
    const mayThread = this.#inWorker && initialSharedPages > 0 && threads !== 1 && backend !== "webgpu";
    const shared = mayThread ? await reserveSharedMemory(initialSharedPages) : undefined;
    const lookForGpu = mayUseGpu(backend) && (backend !== "auto" || builds.includes("webgpu"));
    const features = await detectFeatures(builds, shared, lookForGpu);
    const choice = pickBuild(features, { backend, threads });
    return { features, choice, memory: choice.build.endsWith("-threads") ? shared?.memory : undefined };
  }

  /** The model on the GPU if that is faster; else what is to be said of it. Its failures are no failures of `load`. */
  async #tryGpu({ features, choice: cpu }: Choices): Promise<Model | Judgement> {
    const { signal } = this.#options;
    const choice = { build: "webgpu", backend: "webgpu", threads: 1 } as const;
    let session: Session | undefined;
    let model: Model | undefined;
    let wasProbed = false;
    try {
      session = await this.#connect(choice);
      const request = { type: "probe", ...this.#what, backend: "auto", threads: 1 } as const;
      const { report } = await ask(session, request, "probed", signal ? { signal } : {});
      wasProbed = true;
      const judgement = judge(report, cpu);
      if (!judgement.takesGpu) return judgement;
      model = await this.#openIn(session, choice, undefined, () => reportGpu(judgement, cpu));
      return model;
    } catch (thrown) {
      if (signal?.aborted || (wasProbed && !isOfDevice(thrown))) throw thrown;
      return judgeFailed(features, thrown);
    } finally {
      if (model === undefined) session?.close();
    }
  }

  async #open(
    choice: BuildChoice,
    memory: WebAssembly.Memory | undefined,
    report: (report: DeviceReport) => DeviceReport,
  ): Promise<Model> {
    const session = await this.#connect(choice);
    try {
      return await this.#openIn(session, choice, memory, report);
    } catch (thrown) {
      session.close();
      throw thrown;
    }
  }

  async #openIn(
    session: Session,
    { build, backend, threads }: BuildChoice,
    memory: WebAssembly.Memory | undefined,
    report: (report: DeviceReport) => DeviceReport,
  ): Promise<Model> {
    const place = { backend, threads, limits: engineLimits(this.#options) };
    const shared = memory !== undefined && { memory };
    const draft = this.#draft && { draft: this.#draft };
    const request = { type: "open", ...this.#what, ...draft, ...place, ...shared } as const;
    const opened = await ask(session, request, "opened", this.#options);
    const info = { ...opened.info, build, worker: this.#inWorker };
    return new Model(session, info, report(opened.report), this.#platform.baseUrl);
  }

  async #connect({ build }: BuildChoice): Promise<Session> {
    return new Session(await this.#platform.connect(build, this.#inWorker));
  }
}

function isOfDevice(thrown: unknown): boolean {
  return !(thrown instanceof SetunError) || DEVICE_CODES.includes(thrown.code);
}
