/**
 * The worker protocol: messages between the page (`connection.ts`) and the host of the model (`host.ts`).
 *
 * Each request has an `id` that the page chooses. The events of a generation flow only while it has credit, so that a slow
 * reader holds the model back.
 */

import type { DeviceMemories } from "./backend-fit.js";
import type { BeamOptions } from "./beam-options.js";
import type { EngineLimits } from "./engine-limits.js";
import type { WireError } from "./errors.js";
import type { SharedPages } from "./features.js";
import type { DownloadSize } from "./header-source.js";
import type { LoadProgress } from "./load-progress.js";
import type { Metrics } from "./metrics.js";
import type { FetchOptions } from "./open-model.js";
import type { SentLogitsProcessor } from "./processors.js";
import type { RequestOptions } from "./response-format.js";
import type { ModelSource } from "./sources.js";
import type { ToolCall } from "./tools.js";
import type {
  BeamText,
  Classification,
  DeviceReport,
  HeadType,
  SelfTest,
  WasmEvent,
  WasmModelInfo,
  WasmPrompt,
} from "./wasm.js";

/** A message of a conversation, as chat templates take it. */
export interface ChatMessage {
  /** `system`, `user`, `assistant`, `tool`, or another role that the chat template names. */
  readonly role: "system" | "user" | "assistant" | "tool" | (string & {});
  /** Text of the message, or its parts, which are joined by line breaks. It may be absent beside `tool_calls`. */
  readonly content?: string | readonly TextPart[] | null | undefined;
  /** Calls of functions, where the chat template writes them. */
  readonly tool_calls?: readonly object[] | undefined;
  /** Other fields that the chat template reads. */
  readonly [field: string]: unknown;
}

/** A part of a message's content. */
export interface TextPart {
  /** Discriminator. */
  readonly type: "text";
  /** Text of the part. */
  readonly text: string;
}

/** The source of a model, and how its files are fetched. */
export interface ModelRequest {
  readonly source: ModelSource;
  readonly fetchOptions: FetchOptions;
}

/** The beginning of a generation that goes on. */
export interface KnownGeneration {
  /** When it was requested, in milliseconds. */
  readonly begun: number;
  readonly text: string;
  readonly reasoning?: string;
  readonly tokens: readonly number[];
  readonly toolCalls: readonly ToolCall[];
}

/** How hidden states become a vector. */
export interface Pooling {
  readonly mean: boolean;
  readonly normalize: boolean;
}

/** From the page to the host. */
export type ToHost = { readonly id: number } & (
  | (ModelRequest & {
      /** Reads all but the weights, and reports which device would run. */
      readonly type: "probe";
      readonly backend: string;
      readonly threads: number;
    })
  /** Reads headers only, and reports the model's memory. */
  | (ModelRequest & { readonly type: "estimate"; readonly headType?: HeadType })
  /** Loads a model; continues with a probed one. */
  | (ModelRequest & {
      readonly type: "open";
      /** A draft model for speculative decoding. */
      readonly draft?: ModelRequest;
      readonly backend: string;
      readonly threads: number;
      readonly limits: EngineLimits;
      /** Size of the shared memory of a threaded build. */
      readonly memory?: SharedPages;
    })
  | {
      /** Starts `count` generations: the first with this `id`, the others with the ids that follow. */
      readonly type: "generate";
      readonly prompt: WasmPrompt;
      readonly options: RequestOptions;
      readonly processors?: readonly SentLogitsProcessor[];
      readonly count: number;
      /** Batches of events that the host may send of each before it gets more credit. */
      readonly credit: number;
      /** What is known of one generation that goes on. The ledger of a tab turns it into options. */
      readonly known?: KnownGeneration;
    }
  | {
      readonly type: "beam-search";
      readonly prompt: WasmPrompt;
      readonly beams: BeamOptions;
      readonly options: RequestOptions;
      readonly processors?: readonly SentLogitsProcessor[];
    }
  | { readonly type: "credit"; readonly turns: number }
  | { readonly type: "tokenize"; readonly text: string }
  | { readonly type: "detokenize"; readonly ids: Uint32Array }
  /** Requests a session's tokens with more at the end. */
  | { readonly type: "push"; readonly ids: Uint32Array; readonly more: WasmPrompt }
  | { readonly type: "save"; readonly ids: Uint32Array }
  | { readonly type: "restore"; readonly bytes: Uint8Array }
  | { readonly type: "classify"; readonly prompt: WasmPrompt; readonly labels: readonly string[] }
  | { readonly type: "count-tokens"; readonly prompt: WasmPrompt; readonly options: RequestOptions }
  | { readonly type: "embed"; readonly texts: readonly string[]; readonly pooling: Pooling }
  | { readonly type: "metrics" }
  | { readonly type: "reset-prefix-cache" }
  | { readonly type: "release-memory"; readonly critical: boolean }
  | { readonly type: "self-test" }
  /** Ends the load, generation or beam search of this id. */
  | { readonly type: "stop" }
  | { readonly type: "dispose" }
);

/** From the host to the page. */
export type FromHost = { readonly id: number } & (
  | { readonly type: "progress"; readonly progress: LoadProgress }
  | { readonly type: "probed"; readonly report: DeviceReport }
  | ({ readonly type: "estimated" } & DownloadSize & DeviceMemories)
  | { readonly type: "opened"; readonly info: WasmModelInfo; readonly report: DeviceReport }
  /** A batch of events of a generation. */
  | { readonly type: "events"; readonly events: readonly WasmEvent[] }
  /** The result of a beam search. */
  | { readonly type: "beam-texts"; readonly texts: readonly BeamText[] }
  | { readonly type: "tokens"; readonly ids: Uint32Array }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "saved"; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly type: "classified"; readonly classification: Classification }
  | { readonly type: "count"; readonly count: number }
  | {
      readonly type: "embedded";
      readonly embeddings: readonly Float32Array<ArrayBuffer>[];
      readonly tokens: number;
    }
  | { readonly type: "metrics"; readonly metrics: Metrics }
  | { readonly type: "prefix-cache-reset" }
  | { readonly type: "memory-released"; readonly bytes: number }
  | { readonly type: "self-test-result"; readonly result: SelfTest }
  | { readonly type: "disposed" }
  | { readonly type: "failed"; readonly error: WireError }
);
