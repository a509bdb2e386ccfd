/**
 * The worker protocol: what the two ends say to each other.
 *
 * The page's end is `session.ts`, the model's end `host.ts`. Each conversation has an `id` chosen by the page;
 * a generation's events flow only while it has credit, so that a slow reader holds the model back.
 */

import type { DeviceMemories } from "./backend-fit.js";
import type { WireError } from "./errors.js";
import type { DownloadSize } from "./header-source.js";
import type { Metrics } from "./metrics.js";
import type { FetchOptions } from "./open-model.js";
import type { SentLogitsProcessor } from "./processors.js";
import type { RequestOptions } from "./response-format.js";
import type { ModelSource } from "./sources.js";
import type {
  BeamText,
  Classification,
  DeviceReport,
  EngineLimits,
  SelfTest,
  WasmBeamOptions,
  WasmEvent,
  WasmModelInfo,
  WasmPrompt,
} from "./wasm.js";

/** One turn of a conversation, as chat templates take it. */
export interface ChatMessage {
  readonly role: string;
  readonly content: string;
}

/** A model that is asked for: whence, and how it comes. */
export interface ModelRequest {
  readonly source: ModelSource;
  readonly fetchOptions: FetchOptions;
}

/** How far a model has come, together with its draft: the total grows when the first bytes of that come. */
export interface LoadProgress {
  /** Bytes received so far. */
  readonly loadedBytes: number;
  /** Bytes of all files seen so far; absent while a server does not say. */
  readonly totalBytes?: number;
  /** The file being read. */
  readonly file: string;
  /** True where all of it is in the browser's store already, and nothing is downloaded. */
  readonly fromStore?: boolean;
}

/** From the page to the host. */
export type ToHost = { readonly id: number } & (
  | (ModelRequest & {
      /** Reads all but the weights, and says which device would run. */
      readonly type: "probe";
      readonly backend: string;
      readonly threads: number;
    })
  /** Reads headers alone, and says what the model takes. */
  | (ModelRequest & { readonly type: "estimate" })
  /** Loads a model; one that was probed is read on. */
  | (ModelRequest & {
      readonly type: "open";
      /** A smaller model that guesses for it. */
      readonly draft?: ModelRequest;
      readonly backend: string;
      readonly threads: number;
      readonly limits: EngineLimits;
      /** Shared memory for a threaded build. */
      readonly memory?: WebAssembly.Memory;
    })
  | {
      /** Generates so many times: the first with this `id`, each other with the next one. */
      readonly type: "generate";
      readonly prompt: WasmPrompt;
      readonly options: RequestOptions;
      readonly processors?: readonly SentLogitsProcessor[];
      readonly count: number;
      /** Turns of events the host may send, of each, before it is given more. */
      readonly credit: number;
    }
  | {
      /** Searches for the likeliest texts. */
      readonly type: "beams";
      readonly prompt: WasmPrompt;
      readonly beams: WasmBeamOptions;
      readonly options: RequestOptions;
      readonly processors?: readonly SentLogitsProcessor[];
    }
  | { readonly type: "credit"; readonly turns: number }
  | { readonly type: "tokenize"; readonly text: string }
  | { readonly type: "detokenize"; readonly ids: Uint32Array }
  /** Asks for a session's tokens with more at its end. */
  | { readonly type: "push"; readonly ids: Uint32Array; readonly more: WasmPrompt }
  | { readonly type: "save"; readonly ids: Uint32Array }
  | { readonly type: "restore"; readonly bytes: Uint8Array }
  | { readonly type: "classify"; readonly prompt: WasmPrompt; readonly labels: readonly string[] }
  | { readonly type: "metrics" }
  | { readonly type: "forget-prefixes" }
  | { readonly type: "relieve"; readonly critical: boolean }
  | { readonly type: "self-test" }
  /** Ends the load, generation or search of this id. */
  | { readonly type: "stop" }
  | { readonly type: "dispose" }
);

/** From the host to the page. */
export type FromHost = { readonly id: number } & (
  | { readonly type: "progress"; readonly progress: LoadProgress }
  | { readonly type: "probed"; readonly report: DeviceReport }
  | ({ readonly type: "estimated" } & DownloadSize & DeviceMemories)
  | { readonly type: "opened"; readonly info: WasmModelInfo; readonly report: DeviceReport }
  /** The events of one turn. */
  | { readonly type: "events"; readonly events: readonly WasmEvent[] }
  /** What a search has found. */
  | { readonly type: "found"; readonly texts: readonly BeamText[] }
  | { readonly type: "tokens"; readonly ids: Uint32Array }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "saved"; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly type: "classified"; readonly classification: Classification }
  | { readonly type: "counted"; readonly metrics: Metrics }
  | { readonly type: "forgotten" }
  | { readonly type: "relieved"; readonly bytes: number }
  | { readonly type: "self-tested"; readonly result: SelfTest }
  | { readonly type: "disposed" }
  | { readonly type: "failed"; readonly error: WireError }
);
