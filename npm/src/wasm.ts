/**
 * What the generated WebAssembly modules export, typed by hand.
 *
 * `crates/setun-wasm` is the other side; `scripts/build.js` checks this file against the generated
 * declarations, so that the two cannot drift apart.
 */

import type { ChatMessage } from "./messages.js";

/** The next bytes the reader needs. */
export interface Want {
  readonly file: string;
  /** First byte; without it the whole file is wanted. */
  readonly start?: number;
  /** One past the last byte. */
  readonly end?: number;
  /** Whether a model without this file cannot be loaded. */
  readonly required: boolean;
}

/** Turns bytes, asked for in file order, into a model. */
export interface WasmLoader {
  want(): Want | undefined;
  /** Hands over what was wanted; `undefined` says there is no such file, fewer bytes than asked that it ends there. */
  give(bytes: Uint8Array | undefined): void;
  /** Consumes the loader. */
  finish(options: { backend?: string; threads?: number }): Promise<WasmModel>;
  free(): void;
}

/** A model ready to run. */
export interface WasmModel {
  readonly info: WasmModelInfo;
  generate(prompt: string, options: WasmGenerateOptions): WasmGeneration;
  chat(messages: readonly ChatMessage[], options: WasmGenerateOptions): WasmGeneration;
  tokenize(text: string): Uint32Array;
  detokenize(ids: Uint32Array): string;
  free(): void;
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
  seed?: number | bigint;
  stop?: string[];
  logprobs?: boolean;
}

export type WasmEvent = TextEvent | DoneEvent;

export interface TextEvent {
  readonly type: "text";
  readonly text: string;
  readonly token: number;
  readonly logprob?: number;
}

export interface DoneEvent {
  readonly type: "done";
  readonly finishReason: "stop" | "length" | "aborted";
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
  Loader: new (kind: "folder" | "file", name: string) => WasmLoader;
}
