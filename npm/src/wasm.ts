/**
 * What the generated WebAssembly modules export, typed by hand.
 *
 * `crates/setun-wasm` is the other side; `scripts/build.js` checks this file against the generated
 * declarations, so that the two cannot drift apart.
 */

import type { FilterRule } from "./filter.js";
import type { Metrics } from "./metrics.js";
import type { LogitsProcessor } from "./processors.js";
import type { ChatMessage } from "./protocol.js";

/** Where a model's bytes are. */
export interface WasmFiles {
  /**
   * Bytes `start..end` of a file, or the whole one; fewer only where it ends, `undefined` where there is none. A
   * model without a `required` one cannot be loaded.
   */
  read(
    file: string,
    start: number | undefined,
    end: number | undefined,
    required: boolean,
  ): Promise<Uint8Array | undefined>;
  /** Called before all is read from its beginning: at first, and again where a device was lost. */
  rewind(): void;
  /** Called once all is read, or reading has failed. */
  close(): void;
}

/** A model of which all but the weights has been read. */
export interface WasmLoader {
  /** Bytes of all tensors. */
  readonly totalBytes: number;
  /**
   * What it takes of a processor or of a GPU: tokens of a whole context; bytes of the weights, the cache, the buffers of
   * steps, the largest weight, the largest buffer, and of all at once.
   */
  estimate(onGpu: boolean): Float64Array;
  /** Which device would run, and why. */
  probe(options: WasmDeviceOptions): Promise<DeviceReport>;
  /** Reads the weights onto their device, and then a draft's. Consumes the loaders. */
  finish(options: WasmDeviceOptions, draft?: WasmLoader | null): Promise<WasmModel>;
  free(): void;
}

/** Where to run, by the engine's names, and how much at once. */
export interface WasmDeviceOptions extends EngineLimits {
  readonly backend: string;
  readonly threads: number;
}

/** How much an engine does at once; what is left out is as in Rust. */
export interface EngineLimits {
  /** Whole contexts that the cache may grow to. */
  readonly contexts?: number;
  /** Generations that run at once. */
  readonly streams?: number;
  /** Generations that wait at once. */
  readonly queue?: number;
}

/** The devices that were looked at for a model. */
export interface DeviceReport {
  /** What was found out of each; the one that runs comes first. */
  readonly devices: readonly DeviceVerdict[];
}

/** What was found out of a device. */
export interface DeviceVerdict {
  /** `cpu` or `webgpu` */
  readonly device: string;
  /** The level of the processor, or the GPU as the browser names it; empty where there is none. */
  readonly level: string;
  /** What came of it. */
  readonly verdict: Verdict;
  /** The same in words. */
  readonly reason: string;
  /** Microseconds that one layer of the model takes for one token, where that was measured. */
  readonly layerMicroseconds?: number;
}

/**
 * What came of looking at a device: it runs; another is faster; it is a processor that plays a GPU; there is none; it is
 * there and has failed.
 */
export type Verdict = "chosen" | "slower" | "software" | "absent" | "failed";

/** What a device's self-test came to: each operation, compared with its definition. */
export interface SelfTest {
  /** `cpu` or `webgpu` */
  readonly device: string;
  readonly level: string;
  /** Whether it computes what the definitions say. */
  readonly passed: boolean;
  /** How it differs; empty if it does not. */
  readonly reason: string;
  /** Seconds that the test took. */
  readonly seconds: number;
}

/** A model ready to run. */
export interface WasmModel {
  readonly info: WasmModelInfo;
  readonly deviceReport: DeviceReport;
  /** Tests the device that runs, beside whatever it runs. */
  selfTest(): Promise<SelfTest>;
  /** Goes on so many times from one prompt. */
  generate(prompt: WasmPrompt, options: WasmGenerateOptions, count: number): WasmGeneration[];
  /** Searches for the likeliest texts. */
  beams(prompt: WasmPrompt, beams: WasmBeamOptions, options: WasmGenerateOptions): WasmBeamSearch;
  /** The tokens of a session, and of more at its end. */
  push(tokens: Uint32Array, more: WasmPrompt): Uint32Array;
  /** A session's tokens, and what the cache has of them. */
  save(tokens: Uint32Array): Promise<Uint8Array<ArrayBuffer>>;
  /** The tokens of a saved session; the cache gets what was saved of it. */
  restore(bytes: Uint8Array): Promise<Uint32Array>;
  /** Which of these texts comes after a prompt, and how likely each is. */
  classify(prompt: WasmPrompt, labels: readonly string[]): Promise<Classification>;
  /** What the module of grammars needs of the tokenizer. */
  tokenTable(): Uint8Array;
  metrics(): Promise<Metrics>;
  forgetPrefixes(): void;
  /** Gives memory back; the bytes of the cache that it came to. */
  relieve(isCritical: boolean): Promise<number>;
  tokenize(text: string): Uint32Array;
  detokenize(ids: Uint32Array): string;
  free(): void;
}

/** A form, compiled for the model's tokens. The engine begins a state of it for each text. */
export interface WasmGrammar {
  /** Another handle to it, freed by itself; the engine frees the one that it is given. */
  share(): WasmGrammar;
  free(): void;
}

/** What a generation starts from: a text, tokens, or a conversation. */
export type WasmPrompt = string | Uint32Array | readonly ChatMessage[];

/** A search by beams under way. */
export interface WasmBeamSearch {
  /** What was found at the end, the best first. To be called once. */
  texts(): Promise<BeamText[]>;
  /** Ends the search, which then gives what it has. */
  stop(): void;
  free(): void;
}

/** How a search goes on and ends, all of it. */
export interface WasmBeamOptions {
  readonly beams: number;
  readonly best: number;
  readonly lengthPenalty: number;
  /** `true`, `false` or `never`. */
  readonly earlyStopping: string;
  readonly groups: number;
  readonly diversityPenalty: number;
}

/** A text that a search has found. */
export interface BeamText {
  /** The text, without a stop text or what comes after it. */
  readonly text: string;
  /** Ids of its tokens, one that ended it included. */
  readonly tokens: readonly number[];
  /** Sum of the logarithms of its tokens' probabilities, by its length to the power of `lengthPenalty`. */
  readonly score: number;
  readonly finishReason: DoneEvent["finishReason"];
  /** The stop text that ended it, if one did. */
  readonly stop?: string;
}

/** A running generation. */
export interface WasmGeneration {
  /** All events of one turn (at most a few milliseconds of work), or `undefined` after the last. */
  next(): Promise<WasmEvent[] | undefined>;
  /** Ends the generation at its next turn; may be called while `next` is pending. */
  stop(): void;
  free(): void;
}

/** What is known of a model and of what runs it. */
export interface WasmModelInfo {
  readonly name: string;
  readonly backend: string;
  readonly level: string;
  readonly vocabSize: number;
  readonly contextLength: number;
  readonly threads: number;
  readonly hasChatTemplate: boolean;
  readonly loadSeconds: number;
  readonly weightBytes: number;
  readonly defaults: SamplingDefaults;
}

/** The sampling a model's files ask for. */
export interface SamplingDefaults {
  readonly temperature: number;
  readonly topK: number;
  readonly topP: number;
  readonly minP: number;
  readonly repetitionPenalty: number;
}

/** Options of a generation, already checked. */
export interface WasmGenerateOptions {
  maxTokens?: number;
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  repetitionPenalty?: number;
  dynamicTemperature?: number;
  dynamicTemperatureExponent?: number;
  topNSigma?: number;
  typicalP?: number;
  epsilonCutoff?: number;
  etaCutoff?: number;
  xtcProbability?: number;
  xtcThreshold?: number;
  mirostatTau?: number;
  mirostatEta?: number;
  frequencyPenalty?: number;
  presencePenalty?: number;
  noRepeatNgram?: number;
  dryMultiplier?: number;
  dryBase?: number;
  dryAllowedLength?: number;
  dryRange?: number;
  dryBreakers?: string[];
  allowedTokens?: number[];
  minTokens?: number;
  logitBias?: Record<number, number>;
  bannedTokens?: number[];
  ban?: string[];
  samplingOrder?: string[];
  processors?: readonly LogitsProcessor[];
  seed?: number | bigint;
  stop?: string[];
  filter?: FilterRule[];
  form?: WasmGrammar;
  logprobs?: boolean;
  topLogprobs?: number;
  echo?: boolean;
  lookahead?: number;
  context?: ContextStrategy;
  priority?: number;
  deadline?: number;
}

/**
 * What becomes of a text that fills the context: it ends; tokens go out of its middle, all but the first `keep`, so that
 * there is room for `room` more; or only its first tokens and a window of the last ones are seen.
 */
export type ContextStrategy =
  | "stop"
  | { readonly keep: number; readonly room: number }
  | { readonly sinks: number; readonly window: number };

export type WasmEvent = PromptEvent | TextEvent | DoneEvent;

/** The tokens of the prompt; comes first, if it was asked for. */
export interface PromptEvent {
  readonly type: "prompt";
  readonly tokens: readonly TextDelta[];
}

export interface TextEvent extends TextDelta {
  readonly type: "text";
}

/** A token, and the text that it completes. */
export interface TextDelta {
  /** Text added by this token. Empty while a character, or what may become a stop text, is still incomplete. */
  readonly text: string;
  /** Id of the token, in the model's vocabulary. */
  readonly token: number;
  /** Natural logarithm of the token's probability, before any option of sampling; present if asked for. */
  readonly logprob?: number;
  /** The likeliest tokens in its place, the likeliest first; present if asked for. */
  readonly topLogprobs?: readonly TokenLogprob[];
}

/** A token and the natural logarithm of its probability. */
export interface TokenLogprob {
  readonly token: number;
  readonly logprob: number;
}

/** How likely a text is after its prompt. */
export interface Score {
  /** Its tokens, each with its log-probability after all before it. */
  readonly tokens: readonly TextDelta[];
  /** Natural logarithm of the probability that the model goes on so: the sum of those of the tokens. */
  readonly logprob: number;
  /** The mean of those of the tokens, which does not prefer short texts. */
  readonly meanLogprob: number;
}

/** Which of several texts comes next, where it is one of them. */
export interface Classification {
  /** The place of the likeliest; of equals, the first. */
  readonly best: number;
  /** The probability of each, which together are 1. */
  readonly probabilities: readonly number[];
  /** What they follow from. */
  readonly scores: readonly Score[];
}

export interface DoneEvent {
  readonly type: "done";
  readonly finishReason: "stop" | "length" | "aborted" | "deadline" | "filtered";
  /** The stop string that ended it, if one did. */
  readonly stop?: string;
  readonly usage: { readonly promptTokens: number; readonly generatedTokens: number };
  readonly timings: {
    readonly loadSeconds: number;
    readonly firstTokenSeconds: number;
    readonly tokensPerSecond: number;
  };
  readonly seed: number | bigint;
  readonly backend: string;
  readonly level: string;
  readonly model: string;
}

/** One build's generated module. */
export interface WasmModule {
  default(input: { module_or_path: WebAssembly.Module; memory?: WebAssembly.Memory }): Promise<unknown>;
  Loader: {
    /** Reads all but the weights. Fails with code `network` and the message of what `files` throw. */
    open(
      kind: "folder" | "file",
      name: string,
      files: WasmFiles,
      /** No more than an estimate needs; nothing else is sure to work then. */
      headersOnly?: boolean,
    ): Promise<WasmLoader>;
  };
}
