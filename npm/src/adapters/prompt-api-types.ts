/** Arguments and results of the Prompt API, as its interface definition has them. */

import type { CreateMonitor } from "./prompt-api-monitor.js";

/** Kinds of content. Models of setun read texts. */
export type MessageType = "text" | "image" | "audio" | "tool-call" | "tool-response";

/** A part of a message. */
export interface MessageContent {
  type: MessageType;
  value: unknown;
}

/** A message. `prefix` continues a final message of the assistant. */
export interface PromptMessage {
  role: "system" | "user" | "assistant";
  content: string | readonly MessageContent[];
  prefix?: boolean;
}

/** A text of the user, or messages. */
export type Prompt = string | readonly PromptMessage[];

/** A tool, which the session calls. */
export interface PromptTool {
  name: string;
  description: string;
  /** JSON Schema of the argument. */
  inputSchema: object;
  /** Called with the argument; its result is a text for the model. */
  execute(argument: never): Promise<string> | string;
}

/** A kind of content and its languages. */
export interface Expected {
  type: MessageType;
  languages?: readonly string[];
}

/** How varied answers are. */
export type SamplingMode = "most-predictable" | "predictable" | "balanced" | "creative" | "most-creative";

/** Options of `LanguageModel.availability`. */
export interface CoreOptions {
  /** Default: the sampling of the model, and of `provideModel`. */
  samplingMode?: SamplingMode | "default";
  /** Overrides that of the mode. */
  topK?: number;
  /** Overrides that of the mode. */
  temperature?: number;
  /** Kinds of content that prompts have. */
  expectedInputs?: readonly Expected[];
  /** Kinds of content that answers have. */
  expectedOutputs?: readonly Expected[];
  /** Tools that the session calls. */
  tools?: readonly PromptTool[];
}

/** Options of `LanguageModel.create`. */
export interface CreateOptions extends CoreOptions {
  /** Aborts the creation, and destroys the session afterwards. */
  signal?: AbortSignal;
  /** Gets a target of `downloadprogress` events. */
  monitor?: (monitor: CreateMonitor) => void;
  /** Messages that are never dropped. */
  initialPrompts?: readonly PromptMessage[];
}

/** Options of a prompt. */
export interface PromptOptions {
  /** JSON Schema, or a regular expression for the whole answer. */
  responseConstraint?: object;
  /** Without effect, since constraints are never part of the prompt. It needs a constraint. */
  omitResponseConstraintInput?: boolean;
  /** Aborts the prompt. */
  signal?: AbortSignal;
}

/** Sampling defaults and limits. */
export interface LanguageModelParams {
  readonly defaultTopK: number;
  readonly maxTopK: number;
  readonly defaultTemperature: number;
  readonly maxTemperature: number;
}

/** Whether a model can be had. */
export type Availability = "unavailable" | "downloadable" | "downloading" | "available";
