/**
 * Options of a generation and their documentation.
 *
 * Written by `cargo xtask options` from the option table; do not edit.
 */

import type { FilterRule } from "./filter.js";
import type { PenaltyOptions } from "./penalty-options.js";
import type { ResponseFormat } from "./response-format.js";
import type { SamplingOptions } from "./sampling-options.js";
import type { Tool, ToolChoice } from "./tools.js";
import type { ContextStrategy, PromptProgress } from "./wasm.js";

/** Speculative decoding of a generation. The text does not change. */
export interface SpeculativeOptions {
  /**
   * Speculative decoding: most tokens to propose at once, by prompt lookup or by a draft model. Takes an
   * integer from 0 to 255.
   *
   * Prompt lookup proposes what followed the same tokens earlier in the text. One step verifies all
   * proposals, so the text does not change, sampled or not.
   *
   * @defaultValue 12 with a draft model, else 0
   */
  lookahead?: number;
}

/**
 * Options of {@link Model.generate}, {@link Model.generateMany}, {@link Model.chat} and {@link Session.generate}.
 *
 * An unknown name or a value out of range throws `bad-option` before any work.
 */
export interface GenerateOptions extends SamplingOptions, PenaltyOptions {
  /**
   * Whether a special token that a message spells is read as that token.
   *
   * Otherwise it stays text, and the chat template alone writes special tokens. In a text prompt they are
   * always read.
   *
   * @defaultValue false
   */
  parseSpecial?: boolean;
  /**
   * Whether the last message of a conversation, an assistant's, is continued.
   *
   * The prompt then ends where its content ends. The text that is generated follows the content and does not
   * repeat it.
   *
   * @defaultValue false
   */
  continueFinalMessage?: boolean;
  /**
   * More variables of the chat template, such as `"enable_thinking"`.
   *
   * They go before the template's other variables; `messages`, `tools` and `add_generation_prompt` are none
   * of them.
   *
   * @defaultValue none
   */
  chatTemplateKwargs?: Record<string, unknown>;
  /**
   * Thinking: whether the model thinks before it answers. Takes one of true, false.
   *
   * The chat template gets it as `"enable_thinking"`. Where that does not keep the model from thinking, false
   * closes its reasoning at once.
   *
   * @defaultValue what the template has
   */
  enableThinking?: boolean;
  /**
   * Thinking: how much the model thinks before it answers. Takes one of none, minimal, low, medium, high,
   * xhigh, max.
   *
   * A chat template that knows `"reasoning_effort"` gets it. `"none"` is as `enableThinking` false, others as
   * true.
   *
   * @defaultValue what the template has
   */
  reasoningEffort?: "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max";
  /**
   * Thinking: whether a prompt keeps the reasoning of all earlier answers. Takes one of true, false.
   *
   * A chat template that knows `"preserve_thinking"` gets it, such as Qwen3.6's.
   *
   * @defaultValue what the template has
   */
  preserveThinking?: boolean;
  /**
   * What the chat template has as now: seconds of Unix time. Takes an integer from 0 to 253402300799.
   *
   * Templates that write the date give another prompt each day without it.
   *
   * @defaultValue now
   */
  chatTemplateTime?: number;
  /**
   * Tokens that were generated before, after which the text goes on; events report what is new. Takes a list
   * of token ids.
   *
   * With equal prompt, options and seed the text is that of a generation without a break. Not with mirostat
   * or `promptLogprobs`, whose state is not in the tokens.
   *
   * @defaultValue none
   */
  generatedTokens?: number[];
  /**
   * Thinking: most tokens of reasoning, after which the closing marker is forced. Takes an integer of 0 or
   * more.
   *
   * 0 is as `enableThinking` false. The answer follows in what is left of `maxTokens`.
   *
   * @defaultValue unlimited
   */
  maxThinkingTokens?: number;
  /**
   * Maximum number of tokens to generate. Takes an integer of 1 or more.
   *
   * @defaultValue what fits the context
   */
  maxTokens?: number;
  /**
   * Time limit from the call on, after which the generation ends with what it has. Takes a number of
   * milliseconds from 0 to 1000000000000.
   *
   * It begins with the call, so waiting in the queue counts.
   *
   * @defaultValue none
   */
  timeout?: number;
  /**
   * What is done where a text fills the context, or a prompt does not fit.
   *
   * @defaultValue stop
   */
  contextOverflow?: ContextStrategy;
  /**
   * Stop strings: each ends the text and is not part of it. Takes a list of non-empty strings.
   *
   * @defaultValue none
   */
  stop?: string | string[];
  /**
   * Tokens that end the text, as the model's end tokens do. Takes a list of token ids.
   *
   * Such a token is the last of the generation and not part of the text.
   *
   * @defaultValue none
   */
  stopTokenIds?: number[];
  /**
   * Fewest tokens to generate before an end-of-text token may come. Takes an integer of 0 or more.
   *
   * Stop strings end a text before.
   *
   * @defaultValue 0
   */
  minTokens?: number;
  /**
   * Whether events carry log-probabilities.
   *
   * @defaultValue false
   */
  logprobs?: boolean;
  /**
   * How many of the most probable tokens each event names, with their log-probabilities. Takes an integer of
   * 0 or more.
   *
   * @defaultValue 0
   */
  topLogprobs?: number;
  /**
   * Reports the prompt first, with the log-probabilities of its tokens.
   *
   * The prompt is computed again, even if it is cached.
   *
   * @defaultValue false
   */
  promptLogprobs?: boolean;
  /**
   * Structured output: the constraint that the text follows.
   *
   * @defaultValue none
   */
  responseFormat?: ResponseFormat;
  /**
   * Tools: functions that the model may call, for conversations.
   *
   * Each call that it writes has arguments that are valid under the function's schema.
   *
   * @defaultValue none
   */
  tools?: readonly Tool[];
  /**
   * Tools: whether the model calls them.
   *
   * It decides itself (`"auto"`), is offered none (`"none"`), has to call one (`"required"`) or the named
   * one.
   *
   * @defaultValue auto
   */
  toolChoice?: ToolChoice;
  /**
   * Tools: whether an answer may have several calls. Takes one of true, false.
   *
   * @defaultValue true
   */
  parallelToolCalls?: boolean;
  /**
   * Content filter: replaces words in the text, or ends it before them.
   *
   * It sees the text behind the stop strings, and each text has a state of its own. Tokens, and with them
   * sessions, stay what they are.
   *
   * @defaultValue none
   */
  filter?: FilterRule[];
  /**
   * Requests of a higher priority start first, and are preempted last. Takes an integer from -2147483648 to
   * 2147483647.
   *
   * @defaultValue 0
   */
  priority?: number;
  /**
   * Time limit from the call until it begins to run, after which it fails with `busy`. Takes a number of
   * milliseconds from 0 to 1000000000000.
   *
   * One that is preempted later has begun.
   *
   * @defaultValue none
   */
  queueTimeout?: number;
  /**
   * Salt of the prefix cache: prompts of different salts share nothing in it. Takes a non-empty string.
   *
   * So nobody learns from the time of an answer how another's prompts begin. The text does not change.
   * Without a salt prompts share with all others that have none.
   *
   * @defaultValue none
   */
  cacheSalt?: string;
  /** Speculative decoding: tokens that are proposed, and verified in one step. */
  speculative?: SpeculativeOptions;
  /** Called after each step of the prompt, with how much of it is computed. */
  onPromptProgress?: (progress: PromptProgress) => void;
  /** Aborts the generation, as in `fetch`: the iteration rejects with `signal.reason`. */
  signal?: AbortSignal;
}
