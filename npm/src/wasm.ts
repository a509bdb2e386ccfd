/**
 * Hand-written types of the generated WebAssembly modules.
 *
 * `crates/setun-wasm` is the other side. `scripts/build.js` checks this file against the generated declarations.
 */

import type { BeamOptions } from "./beam-options.js";
import type { EngineLimits } from "./engine-limits.js";
import type { GenerateOptions } from "./generate-options.js";
import type { Metrics } from "./metrics.js";
import type { LogitsProcessor } from "./processors.js";
import type { ChatMessage } from "./protocol.js";
import type { SamplingDefaults } from "./sampling-defaults.js";
import type { ToolCallDelta } from "./tools.js";

/** The source of a model's bytes. */
export interface WasmFiles {
  /**
   * Bytes `start..end` of a file, or the whole file. Fewer only at the end of the file, `undefined` if it does not exist.
   * A missing `required` file is an error.
   */
  read(
    file: string,
    start: number | undefined,
    end: number | undefined,
    required: boolean,
  ): Promise<Uint8Array | undefined>;
  /** Called before the files are read from the beginning: for the first load, and again after a lost device. */
  rewind(): void;
  /** Called when everything is read, or reading has failed. */
  close(): void;
}

/** A model whose files are read except for the weights. */
export interface WasmLoader {
  /** Bytes of all tensors. */
  readonly totalBytes: number;
  /** Whether only processors compute the model. */
  readonly needsProcessor: boolean;
  /**
   * Memory on a CPU or a GPU: tokens of a whole context, then bytes of the weights, the KV cache, the step buffers, the
   * largest weight, the largest buffer, the total, and the recurrent state of one text. `headType` is how the head is
   * kept.
   */
  estimate(onGpu: boolean, headType?: HeadType): Float64Array;
  /** The device that would run, and the reason. */
  probe(options: WasmDeviceOptions): Promise<DeviceReport>;
  /** Reads the weights onto their device, and then those of a draft model. Consumes the loaders. */
  finish(options: WasmDeviceOptions, draft?: WasmLoader | null): Promise<WasmModel>;
  free(): void;
}

/** How the head is kept in memory. */
export type HeadType = NonNullable<EngineLimits["headType"]>;

/** Device and limits of an engine. */
export interface WasmDeviceOptions extends EngineLimits {
  readonly backend: string;
  readonly threads: number;
}

/** The devices that were considered for a model. */
export interface DeviceReport {
  /** One entry per device; the one that runs comes first. */
  readonly devices: readonly DeviceVerdict[];
}

/** The result for one device. */
export interface DeviceVerdict {
  /** `cpu`, `webgpu` or `webnn` */
  readonly device: string;
  /** Instruction level of the CPU, name of the GPU, or kind of WebNN's device; empty if there is none. */
  readonly level: string;
  /** Whether the device runs, or why it does not. */
  readonly verdict: Verdict;
  /** The verdict in words. */
  readonly reason: string;
  /** Measured time of one layer for one token, in microseconds. */
  readonly layerMicroseconds?: number;
  /**
   * With the option `webnn`: microseconds of a product of one token's row by a matrix of the hidden size. WebNN's is
   * measured with float weights, that of the device which runs estimated from its tokens.
   */
  readonly productMicroseconds?: number;
}

/**
 * `chosen`: the device runs. `slower`: another one is faster. `software`: a software adapter. `absent`: no such device.
 * `failed`: the device, its driver or its self-test failed. `unused`: measured only.
 */
export type Verdict = "chosen" | "slower" | "software" | "absent" | "failed" | "unused";

/** Result of a self-test, which compares each operation with its reference implementation. */
export interface SelfTest {
  /** `cpu` or `webgpu` */
  readonly device: string;
  /** Instruction level of the CPU, or name of the GPU. */
  readonly level: string;
  /** Whether all results agree. */
  readonly passed: boolean;
  /** The first difference; empty if there is none. */
  readonly reason: string;
  /** Duration of the test in seconds. */
  readonly seconds: number;
}

/** A model ready to run. */
export interface WasmModel {
  readonly info: WasmModelInfo;
  readonly deviceReport: DeviceReport;
  /** Tests the device. Generations continue meanwhile. */
  selfTest(): Promise<SelfTest>;
  /** Starts `count` generations from one prompt. */
  generate(prompt: WasmPrompt, options: WasmGenerateOptions, count: number): WasmGeneration[];
  /** Starts a beam search. */
  beamSearch(prompt: WasmPrompt, beams: BeamOptions, options: WasmGenerateOptions): WasmBeamSearch;
  /** The tokens of a session, with more at the end. */
  push(tokens: Uint32Array, more: WasmPrompt): Uint32Array;
  /** A session as bytes: its tokens and their part of the KV cache. */
  save(tokens: Uint32Array): Promise<Uint8Array<ArrayBuffer>>;
  /** The tokens of a saved session. Its KV cache is restored. */
  restore(bytes: Uint8Array): Promise<Uint32Array>;
  /** Scores each of several texts as the continuation of a prompt. */
  classify(prompt: WasmPrompt, labels: readonly string[]): Promise<Classification>;
  /** A vector for each text, and then the number of tokens of all. */
  embed(
    texts: readonly string[],
    isMean: boolean,
    isNormalized: boolean,
  ): Promise<(Float32Array<ArrayBuffer> | number)[]>;
  /** Tokens of a prompt in a request with these options. */
  countTokens(prompt: WasmPrompt, options: WasmGenerateOptions): number;
  /** Name of the format of tool calls, for the grammar module. */
  readonly toolFormat: string;
  /** Vocabulary table for the grammar module. */
  tokenTable(): Uint8Array;
  metrics(): Promise<Metrics>;
  resetPrefixCache(): void;
  /** Releases memory; returns the released bytes of the KV cache. */
  releaseMemory(isCritical: boolean): Promise<number>;
  tokenize(text: string): Uint32Array;
  detokenize(ids: Uint32Array): string;
  free(): void;
}

/** A grammar, compiled for the model's vocabulary. The engine creates a state of it for each text. */
export interface WasmGrammar {
  /** Another handle, freed on its own. The engine frees the handle that it receives. */
  share(): WasmGrammar;
  free(): void;
}

/** A prompt: a text, token ids, or chat messages. */
export type WasmPrompt = string | Uint32Array | readonly ChatMessage[];

/** A running beam search. */
export interface WasmBeamSearch {
  /** The texts found, the best first. Call it once. */
  texts(): Promise<BeamText[]>;
  /** Ends the search, which then returns the best texts so far. */
  stop(): void;
  free(): void;
}

/** A text found by a beam search. */
export interface BeamText {
  /** The text, without a stop string and what follows it. */
  readonly text: string;
  /** Ids of its tokens, including an end token. */
  readonly tokens: readonly number[];
  /** Sum of its tokens' log-probabilities, divided by its length to the power of `lengthPenalty`. */
  readonly score: number;
  /** Why the text ended. */
  readonly finishReason: DoneEvent["finishReason"];
  /** The stop string that ended it, if one did. */
  readonly stop?: string;
}

/** A running generation. */
export interface WasmGeneration {
  /** The events that are ready, at least one; `undefined` after the last. */
  next(): Promise<WasmEvent[] | undefined>;
  /** Ends the generation; may be called while `next` is pending. */
  stop(): void;
  free(): void;
}

/** Properties of a model and of the device that runs it. */
export interface WasmModelInfo {
  /** Name of the model: of its file, its folder or its repository. */
  readonly name: string;
  /** `cpu` or `webgpu` */
  readonly backend: string;
  /** Instruction level of the CPU, or name of the GPU. */
  readonly level: string;
  /** Number of tokens of the vocabulary. */
  readonly vocabSize: number;
  /** Maximum number of tokens of a text, prompt included. */
  readonly contextLength: number;
  /** Threads that compute. */
  readonly threads: number;
  /** Whether {@link Model.chat} works. */
  readonly hasChatTemplate: boolean;
  /** Duration of loading in seconds. */
  readonly loadSeconds: number;
  /** Bytes of the weights in memory. */
  readonly weightBytes: number;
  /** Repairs and assumptions made while the model was read, such as keys or tensors without use. Also on the console. */
  readonly warnings: readonly string[];
  /** Sampling options of the model's own files. */
  readonly defaults: SamplingDefaults;
}

/** Checked options of a generation. */
export interface WasmGenerateOptions
  extends Omit<
    GenerateOptions,
    | "signal"
    | "logitsProcessors"
    | "responseFormat"
    | "speculative"
    | "onPromptProgress"
    | "tools"
    | "toolChoice"
    | "parallelToolCalls"
  > {
  lookahead?: number;
  /** JSON text of `{tools, toolChoice}`; its `grammar` is that of the calls. */
  tools?: string;
  promptProgress?: boolean;
  logitsProcessors?: readonly LogitsProcessor[];
  grammar?: WasmGrammar;
}

/**
 * What happens when a text fills the context.
 *
 * `"stop"` ends the text. The other strategies compute the text again from fewer tokens, then it continues without end.
 * By name alone, `"truncate_middle"` keeps the first quarter of the context and drops the next, and `"sliding_window"`
 * keeps four tokens and the last half.
 */
export type ContextStrategy = "stop" | "truncate_middle" | "sliding_window" | TruncateMiddle | SlidingWindow;

/** Drops tokens after the first `keep`, so that `room` more fit: context shift, as llama.cpp's `n_keep`. */
export interface TruncateMiddle {
  /** Discriminator. */
  readonly type: "truncate_middle";
  /** Tokens kept at the start, 0 or more. */
  readonly keep: number;
  /** Tokens that fit afterwards, 1 or more. */
  readonly room: number;
}

/** Keeps the first tokens (attention sinks) and a sliding window of the last ones, as in StreamingLLM. */
export interface SlidingWindow {
  /** Discriminator. */
  readonly type: "sliding_window";
  /** Tokens kept at the start, 0 or more. */
  readonly sinks: number;
  /** Tokens kept at the end, 1 or more. */
  readonly window: number;
}

export type WasmEvent = ProgressEvent | PromptEvent | TextEvent | DoneEvent;

/** How much of a prompt is computed. */
export interface PromptProgress {
  /** Tokens in the KV cache, cached ones included. */
  readonly computedTokens: number;
  /** Tokens of the prompt. */
  readonly promptTokens: number;
}

/** After a step of the prompt, with the option `promptProgress`. */
export interface ProgressEvent extends PromptProgress {
  readonly type: "progress";
}

/** The tokens of the prompt. The first event, with the option `promptLogprobs`. */
export interface PromptEvent {
  readonly type: "prompt";
  readonly tokens: readonly TextDelta[];
}

export interface TextEvent extends TextDelta {
  readonly type: "text";
}

/** A token and the text that it completes. */
export interface TextDelta {
  /** Text added by this token. Empty while a character, or a possible stop string, is incomplete. */
  readonly text: string;
  /** What this token adds to the reasoning, if it belongs to it or to its markers. It is no part of the text. */
  readonly reasoning?: string;
  /** Id of the token. */
  readonly token: number;
  /** Natural logarithm of the token's probability before sampling options; with `logprobs`. */
  readonly logprob?: number;
  /** The most likely tokens at this position, the most likely first; with `topLogprobs`. */
  readonly topLogprobs?: readonly TokenLogprob[];
  /** Pieces of the calls that this token belongs to; with `tools`. They are no part of the text. */
  readonly toolCalls?: readonly ToolCallDelta[];
}

/** A token with the natural logarithm of its probability. */
export interface TokenLogprob {
  /** Id of the token. */
  readonly token: number;
  /** Its text by itself; bytes that form no character are U+FFFD. */
  readonly text: string;
  /** Natural logarithm of its probability. */
  readonly logprob: number;
}

/** Score of a text as the continuation of a prompt. */
export interface Score {
  /** Its tokens with their log-probabilities. */
  readonly tokens: readonly TextDelta[];
  /** Log-probability of the text: the sum over its tokens. */
  readonly logprob: number;
  /** Mean log-probability per token, which does not favour short texts. */
  readonly meanLogprob: number;
}

/** Probabilities of several labels, given that one of them follows. */
export interface Classification {
  /** Index of the most likely label; the first of equals. */
  readonly best: number;
  /** Probability of each label; the sum is 1. */
  readonly probabilities: readonly number[];
  /** Score of each label. */
  readonly scores: readonly Score[];
}

/** The last event of a generation. */
export interface DoneEvent {
  readonly type: "done";
  /**
   * `stop`: an end token or a stop string. `length`: `maxTokens` or a full context. `aborted`: {@link Generation.stop}.
   * `timeout`: the time limit. `content_filter`: the content filter. `tool_calls`: an end token after calls.
   */
  readonly finishReason: "stop" | "length" | "tool_calls" | "aborted" | "content_filter" | "timeout";
  /** `true` where the text ends before its `responseFormat` is complete, such as JSON that is cut off, or within a call. */
  readonly unfinished?: boolean;
  /** The stop string that ended the text, if one did. */
  readonly stop?: string;
  /** Numbers of tokens. */
  readonly usage: {
    /** Tokens of the prompt. */
    readonly promptTokens: number;
    /** Generated tokens. */
    readonly completionTokens: number;
    /** Both together. */
    readonly totalTokens: number;
    /** Tokens of the prompt that were in the KV cache and not computed. */
    readonly cachedTokens: number;
    /** Generated tokens that are reasoning. */
    readonly reasoningTokens: number;
  };
  /** Durations in seconds, and the decoding speed. */
  readonly timings: {
    /** Loading the model. */
    readonly loadSeconds: number;
    /** From the request to the first token. */
    readonly firstTokenSeconds: number;
    /** Decoding speed after the first token. */
    readonly tokensPerSecond: number;
  };
  /** Seed of the sampler; a `bigint` beyond 2⁵³. */
  readonly seed: number | bigint;
  /** `cpu` or `webgpu` */
  readonly backend: string;
  /** Instruction level of the CPU, or name of the GPU. */
  readonly level: string;
  /** Name of the model. */
  readonly model: string;
  /** What the text was not held to, such as a part of a tool's schema that cannot be applied; in sentences. */
  readonly warnings?: readonly string[];
}

/** The generated module of one build. */
export interface WasmModule {
  default(input: { module_or_path: WebAssembly.Module; memory?: WebAssembly.Memory }): Promise<unknown>;
  Loader: {
    /** Reads all but the weights. Fails with the code `network` and the message of what `files` throws. */
    open(
      /** `tensors`: the list that another module has of a file. */
      kind: "folder" | "file" | "tensors",
      name: string,
      files: WasmFiles,
      /** Reads only what `estimate` needs; other methods may then fail. */
      headersOnly?: boolean,
      /** How a GGUF file's tokenizer splits text. */
      pretokenizer?: string,
    ): Promise<WasmLoader>;
  };
}
