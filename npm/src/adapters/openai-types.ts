/** Requests and answers of `setun/openai`. Answers are assignable to the types of the official client. */

import type { ChoiceFormat, GrammarFormat } from "../response-format.js";
import type { GenerateOptions, Tool } from "./core.js";

type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : Name;

/** Options that have a parameter of their own in the API, or no meaning in a request. */
type Mapped =
  | "maxTokens"
  | "responseFormat"
  | "tools"
  | "toolChoice"
  | "signal"
  | "onPromptProgress"
  | "logprobs"
  | "promptLogprobs"
  | "stop"
  | "logitBias";

/** All other options of a generation, in snake case: `top_k`, `min_p`, `repetition_penalty`, `continue_final_message`, … */
export type ExtraOptions = {
  [Name in Exclude<keyof GenerateOptions, Mapped> as SnakeCase<Name>]?: GenerateOptions[Name] | null;
};

/** Parameters that change no text here and are ignored. */
export interface IgnoredParams {
  metadata?: object | null;
  prediction?: object | null;
  prompt_cache_key?: string | null;
  prompt_cache_options?: object | null;
  prompt_cache_retention?: string | null;
  safety_identifier?: string | null;
  service_tier?: string | null;
  store?: boolean | null;
  user?: string;
}

/** Parameters that all texts share. */
export interface SamplingParams extends ExtraOptions, IgnoredParams {
  /** Name of a loaded model. Default: the only one. */
  model?: string;
  /** Token ids with what is added to their logits. */
  logit_bias?: Record<string, number> | null;
  /** Stop strings. */
  stop?: string | string[] | null;
  /** Texts of each prompt. */
  n?: number | null;
  /** Whether chunks come as they are generated. */
  stream?: boolean | null;
  /** `include_usage`: a last chunk with the numbers of tokens. */
  stream_options?: { include_usage?: boolean; include_obfuscation?: boolean } | null;
}

/** A message. Content may be parts of type `text`. */
export interface ChatMessageParam {
  role: "system" | "developer" | "user" | "assistant" | "tool" | (string & {});
  content?: string | readonly { readonly type: string; readonly text?: string }[] | null;
  name?: string;
  refusal?: string | null;
  /** What the assistant thought; also `reasoning`. The chat template keeps or drops it. */
  reasoning_content?: string;
  reasoning?: string;
  tool_calls?: readonly object[];
  tool_call_id?: string;
}

/** A function that the model may call. */
export interface ToolParam {
  type: "function" | (string & {});
  function?: { name: string; description?: string; parameters?: object; strict?: boolean | null };
}

/** Which tools are called. */
export type ToolChoiceParam =
  | "none"
  | "auto"
  | "required"
  | { type: "function" | (string & {}); function?: { name: string } };

/** The format of the text; grammars and choices are additions of setun. */
export type ResponseFormatParam =
  | { type: "text" }
  | { type: "json_object" }
  | {
      type: "json_schema";
      json_schema: { name?: string; description?: string; schema?: object; strict?: boolean | null };
    }
  | GrammarFormat
  | ChoiceFormat;

/** Parameters of `chat.completions.create`. */
export interface ChatParams extends SamplingParams {
  messages: readonly ChatMessageParam[];
  max_completion_tokens?: number | null;
  max_tokens?: number | null;
  logprobs?: boolean | null;
  response_format?: ResponseFormatParam;
  tools?: readonly ToolParam[];
  tool_choice?: ToolChoiceParam;
}

/** Parameters of `completions.create`. */
export interface CompletionParams extends SamplingParams {
  prompt: string | readonly string[] | readonly number[] | readonly (readonly number[])[] | null;
  /** Returns the prompt, too. */
  echo?: boolean | null;
  /** Log-probabilities, with those of this many likely tokens. */
  logprobs?: number | null;
  max_tokens?: number | null;
  response_format?: ResponseFormatParam;
  /** Refused unless it is `n`. */
  best_of?: number | null;
  /** Refused: the models continue texts only. */
  suffix?: string | null;
}

/** Parameters of `embeddings.create`. */
export interface EmbeddingParams {
  model?: string;
  input: string | readonly string[] | readonly number[] | readonly (readonly number[])[];
  encoding_format?: "float" | "base64";
  /** Refused: an embedding has the size of the model. */
  dimensions?: number;
  user?: string;
}

/** Numbers of tokens. */
export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details: { cached_tokens: number };
  completion_tokens_details: { reasoning_tokens: number };
}

/** A likely token. */
export interface TopLogprob {
  token: string;
  /** Its UTF-8 bytes; `null` for a part of a character. */
  bytes: number[] | null;
  logprob: number;
}

/** A token of a text with its log-probability. */
export interface TokenLogprobs extends TopLogprob {
  top_logprobs: TopLogprob[];
}

/** Log-probabilities of a text. */
export interface Logprobs {
  content: TokenLogprobs[];
  refusal: null;
}

/** A call of a function. */
export interface FunctionCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

/** Why a text ended. */
export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";

/** What the model thought, by both names that servers have for it. */
export interface Thoughts {
  reasoning_content?: string;
  reasoning?: string;
}

/** Answer of `chat.completions.create`. */
export interface ChatCompletion {
  id: string;
  object: "chat.completion";
  created: number;
  model: string;
  choices: {
    index: number;
    finish_reason: FinishReason;
    logprobs: Logprobs | null;
    message: {
      role: "assistant";
      content: string | null;
      refusal: null;
      tool_calls?: FunctionCall[];
    } & Thoughts;
  }[];
  usage: Usage;
}

/** A chunk of `chat.completions.create` with `stream: true`. */
export interface ChatCompletionChunk {
  id: string;
  object: "chat.completion.chunk";
  created: number;
  model: string;
  choices: {
    index: number;
    finish_reason: FinishReason | null;
    logprobs: Logprobs | null;
    delta: {
      role?: "assistant";
      content?: string;
      tool_calls?: {
        index: number;
        id?: string;
        type?: "function";
        function: { name?: string; arguments?: string };
      }[];
    } & Thoughts;
  }[];
  usage?: Usage | null;
}

/** Log-probabilities of a completion, one of each list for each token. */
export interface CompletionLogprobs {
  tokens: string[];
  /** At run time `null` for the first token of an echoed prompt, as in the API. */
  token_logprobs: number[];
  top_logprobs: { [token: string]: number }[];
  text_offset: number[];
}

/** Answer, or chunk, of `completions.create`. */
export interface Completion {
  id: string;
  object: "text_completion";
  created: number;
  model: string;
  choices: {
    index: number;
    /** Absent, as `null`, in all chunks of a stream but the last of its text. */
    finish_reason: "stop" | "length" | "content_filter";
    logprobs: CompletionLogprobs | null;
    text: string;
  }[];
  usage?: Usage;
}

/** Answer of `embeddings.create`. */
export interface EmbeddingResponse<Embedding = number[]> {
  object: "list";
  model: string;
  data: { object: "embedding"; index: number; embedding: Embedding }[];
  usage: { prompt_tokens: number; total_tokens: number };
}

/** A loaded model. */
export interface ModelObject {
  id: string;
  object: "model";
  created: number;
  owned_by: string;
}

/** Tools as the engine takes them. */
export type { Tool };
