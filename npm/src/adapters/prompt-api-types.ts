/** Arguments, results and classes of values of the Prompt API, as its interface definition has them. */

import type { LoadProgress } from "../load-progress.js";
import type { AdapterModel, GenerateOptions } from "./core.js";
import type { CreateMonitor } from "./prompt-api-monitor.js";

/** Kinds of content. Models of setun read texts. */
export type MessageType = "text" | "image" | "audio" | "tool-call" | "tool-response";

/** A part of a message. */
export type MessageContent =
  | { type: "text"; value: string }
  | { type: "tool-call"; value: LanguageModelToolCall }
  | { type: "tool-response"; value: LanguageModelToolSuccess | LanguageModelToolError };

/** A part of a tool's result. Models of setun read texts and objects. */
export interface ToolResultContent {
  type: "text" | "image" | "audio" | "object";
  value: unknown;
}

/** An answer of a session whose tools the application runs: a text, or a list with calls. */
export type OpenAnswer = string | MessageContent[];

/** A piece of a streamed answer: a text, or a part with a call. */
export type Piece<Answer> = string | (Answer extends readonly (infer Part)[] ? Part : never);

/** A message. `prefix` continues a final message of the assistant. */
export interface PromptMessage {
  role: "system" | "user" | "assistant";
  content: string | readonly MessageContent[];
  prefix?: boolean;
}

/** A text of the user, or messages. */
export type Prompt = string | readonly PromptMessage[];

/** A tool. */
export interface PromptTool {
  name: string;
  description: string;
  /** JSON Schema of the argument. */
  inputSchema: object;
  /** Called by the session with the argument; its result is a text for the model. Without it the application runs the tool. */
  execute?(argument: never): Promise<string> | string;
}

/** A kind of content and its languages. */
export interface Expected {
  type: MessageType;
  languages?: readonly string[];
}

/** How varied answers are. */
export type SamplingMode =
  | "most-predictable"
  | "predictable"
  | "slightly-predictable"
  | "balanced"
  | "slightly-creative"
  | "creative"
  | "most-creative";

/** Options of `LanguageModel.availability`. */
export interface CoreOptions {
  /** Default: the sampling of the model, and of `provideModel`. */
  samplingMode?: SamplingMode | "default";
  /** Not beside a mode. */
  topK?: number;
  /** Not beside a mode. */
  temperature?: number;
  /** Kinds of content that prompts have. */
  expectedInputs?: readonly Expected[];
  /** Kinds of content that answers have. With `tool-call`, calls of tools without `execute` are answers. */
  expectedOutputs?: readonly Expected[];
  /** Tools that the model may call. */
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

/** Options for `load`. */
export interface LoaderOptions {
  /** Reports progress. */
  readonly onProgress: (progress: LoadProgress) => void;
}

/** A loaded model, or a function that loads it when the first session is created. */
export type ModelSource = AdapterModel | ((options: LoaderOptions) => Promise<AdapterModel>);

/** Options of all sessions. */
export type SessionDefaults = Omit<GenerateOptions, "signal" | "tools" | "toolChoice" | "responseFormat">;

/** Options of `install`. */
export interface InstallOptions {
  /** Replaces a class that exists. */
  readonly force?: boolean;
  /** Options of all answers. */
  readonly defaults?: SessionDefaults;
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

/** Input that does not fit the context, even alone. */
export class QuotaExceededError extends DOMException {
  /** Tokens that the context holds. */
  readonly quota: number;
  /** Tokens of the input. */
  readonly requested: number;

  constructor(message: string, { quota, requested }: { quota: number; requested: number }) {
    super(message, "QuotaExceededError");
    this.quota = quota;
    this.requested = requested;
  }
}

/** A call of a tool, which the application makes. */
export class LanguageModelToolCall {
  /** Names the call in its response. */
  readonly callId: string;
  /** Name of the tool. */
  readonly name: string;
  /** The argument, valid under the tool's schema. */
  // biome-ignore lint/suspicious/noExplicitAny: only the application knows its schema
  readonly arguments: any;

  constructor(init: { callId: string; name: string; arguments: object }) {
    checkInit(init, ["callId", "name", "arguments"]);
    this.callId = String(init.callId);
    this.name = String(init.name);
    this.arguments = init.arguments;
  }
}

/** The result of a call. */
export class LanguageModelToolSuccess {
  /** That of the call. */
  readonly callId: string;
  /** Name of the tool. */
  readonly name: string;
  /** Texts and objects. */
  readonly result: readonly ToolResultContent[];

  constructor(init: { callId: string; name: string; result: readonly ToolResultContent[] }) {
    checkInit(init, ["callId", "name", "result"]);
    if (!Array.isArray(init.result)) throw new TypeError("result: expected a list of {type, value}");
    this.callId = String(init.callId);
    this.name = String(init.name);
    this.result = Object.freeze([...init.result]);
  }
}

/** The failure of a call. */
export class LanguageModelToolError {
  /** That of the call. */
  readonly callId: string;
  /** Name of the tool. */
  readonly name: string;
  /** What went wrong, for the model. */
  readonly errorMessage: string;

  constructor(init: { callId: string; name: string; errorMessage: string }) {
    checkInit(init, ["callId", "name", "errorMessage"]);
    this.callId = String(init.callId);
    this.name = String(init.name);
    this.errorMessage = String(init.errorMessage);
  }
}

/** @throws {TypeError} for a member that is absent. */
function checkInit(init: object, names: readonly string[]): void {
  for (const name of names)
    if ((init as Record<string, unknown>)?.[name] === undefined)
      throw new TypeError(`${name}: it is required`);
}
