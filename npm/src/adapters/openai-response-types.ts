/** Requests, answers and events of `responses.create`. Answers are assignable to the types of the official client. */

import type { GenerateOptions } from "./core.js";
import type { ExtraOptions, IgnoredParams, TokenLogprobs } from "./openai-types.js";

/** A message, a call or its output. */
export interface ResponseInputItem {
  type?: string | null;
  role?: string;
  content?: string | readonly { readonly type: string; readonly text?: string }[] | null;
  call_id?: string | null;
  name?: string | null;
  arguments?: unknown;
  output?: unknown;
  summary?: unknown;
}

/** A function that the model may call. */
export interface ResponseTool {
  type: "function";
  name: string;
  description?: string | null;
  parameters: { [key: string]: unknown } | null;
  strict: boolean | null;
}

/** The format of the text. */
export type TextFormatParam =
  | { type: "text" }
  | { type: "json_object" }
  | {
      type: "json_schema";
      name: string;
      schema: { [key: string]: unknown };
      description?: string;
      strict?: boolean | null;
    };

/** Which tools are called. */
export type ResponseToolChoice = "none" | "auto" | "required" | { type: "function"; name: string };

/** Parameters of `responses.create`. Nothing is stored, so each request has the whole conversation. */
export interface ResponseParams extends ExtraOptions, IgnoredParams {
  model?: string;
  input?: string | readonly ResponseInputItem[];
  instructions?: string | null;
  max_output_tokens?: number | null;
  /** `message.output_text.logprobs` adds log-probabilities; other entries are refused. */
  include?: readonly string[] | null;
  /** Without effect: there are no built-in tools. */
  max_tool_calls?: number | null;
  /** How much the model thinks; `summary` is without effect: reasoning comes whole. */
  reasoning?: { effort?: GenerateOptions["reasoningEffort"] | null; summary?: string | null } | null;
  stop?: string | string[] | null;
  stream?: boolean | null;
  stream_options?: object | null;
  text?: { format?: TextFormatParam; verbosity?: string | null };
  tools?: readonly { type: string }[];
  tool_choice?: ResponseToolChoice | { type: string };
  truncation?: "auto" | "disabled" | null;
}

/** Log-probability of a token; without bytes where it is a part of a character. */
export interface ResponseLogprob extends Omit<TokenLogprobs, "bytes" | "top_logprobs"> {
  bytes: number[];
  top_logprobs: { token: string; bytes: number[]; logprob: number }[];
}

/** A text of a message. */
export interface OutputText {
  type: "output_text";
  text: string;
  annotations: never[];
  logprobs: ResponseLogprob[];
}

/** A message of the answer. */
export interface OutputMessage {
  type: "message";
  id: string;
  role: "assistant";
  status: "in_progress" | "completed" | "incomplete";
  content: OutputText[];
}

/** A text of reasoning. */
export interface ReasoningText {
  type: "reasoning_text";
  text: string;
}

/** What the model thought. */
export interface OutputReasoning {
  type: "reasoning";
  id: string;
  status: "in_progress" | "completed" | "incomplete";
  summary: never[];
  content: ReasoningText[];
}

/** A call of a function. */
export interface OutputCall {
  type: "function_call";
  id: string;
  call_id: string;
  name: string;
  arguments: string;
  status: "in_progress" | "completed" | "incomplete";
}

/** Answer of `responses.create`. */
export interface ModelResponse {
  id: string;
  object: "response";
  created_at: number;
  completed_at: number | null;
  status: "in_progress" | "completed" | "incomplete";
  model: string;
  output: (OutputReasoning | OutputMessage | OutputCall)[];
  output_text: string;
  error: null;
  incomplete_details: { reason: "max_output_tokens" | "content_filter" } | null;
  instructions: string | null;
  metadata: { [key: string]: string } | null;
  parallel_tool_calls: boolean;
  temperature: number | null;
  top_p: number | null;
  max_output_tokens: number | null;
  previous_response_id: null;
  store: false;
  text: { format: TextFormatParam };
  tool_choice: ResponseToolChoice;
  tools: ResponseTool[];
  truncation: "disabled";
  access_programs: null;
  usage?: {
    input_tokens: number;
    input_tokens_details: { cached_tokens: number; cache_write_tokens: number };
    output_tokens: number;
    output_tokens_details: { reasoning_tokens: number };
    total_tokens: number;
  };
}

/** An event of `responses.create` with `stream: true`. */
export type ResponseEvent = { sequence_number: number } & (
  | { type: "response.created" | "response.in_progress"; response: ModelResponse }
  | { type: "response.completed"; response: ModelResponse }
  | { type: "response.incomplete"; response: ModelResponse }
  | {
      type: "response.output_item.added" | "response.output_item.done";
      output_index: number;
      item: OutputReasoning | OutputMessage | OutputCall;
    }
  | ({
      type: "response.content_part.added" | "response.content_part.done";
      part: OutputText | ReasoningText;
    } & Place)
  | ({ type: "response.reasoning_text.delta"; delta: string } & Place)
  | ({ type: "response.reasoning_text.done"; text: string } & Place)
  | ({ type: "response.output_text.delta"; delta: string; logprobs: ResponseLogprob[] } & Place)
  | ({ type: "response.output_text.done"; text: string; logprobs: ResponseLogprob[] } & Place)
  | { type: "response.function_call_arguments.delta"; item_id: string; output_index: number; delta: string }
  | {
      type: "response.function_call_arguments.done";
      item_id: string;
      output_index: number;
      name: string;
      arguments: string;
    }
);

/** The place of a text in an answer. */
export interface Place {
  item_id: string;
  output_index: number;
  content_index: number;
}
